// Types that the page's modules share; no code.

/** @typedef {ReturnType<Awaited<ReturnType<typeof import("./engine.js").compileCore>>["load"]>} Engine */

/**
 * An op of the program, as about.py describes it. Buffer 0 is the input, and op i writes buffer i + 1.
 * @typedef {object} Op
 * @property {string} name
 * @property {string} op
 * @property {number[]} inputs
 * @property {"pixels" | "spikes" | "counts" | "floats"} kind
 * @property {number} channels
 * @property {number} height
 * @property {number} width
 * @property {number} macs dense multiply-accumulates of one step
 * @property {number} [kernel]
 * @property {number} [heads]
 * @property {boolean} [inverted]
 * @property {number} [scale]
 * @property {number} [threshold]
 * @property {number} [reset]
 */

/**
 * @typedef {object} Attention
 * @property {string} block
 * @property {"product" | "mask"} form
 * @property {number} number the buffer that its op writes
 * @property {number} heads
 * @property {string | null} neuron whose channels are those of the heads
 */

/**
 * @typedef {object} Preprocessing
 * @property {"image" | "events"} kind
 * @property {[number, number]} size
 * @property {number} channels
 * @property {number[] | null} [mean]
 * @property {number[] | null} [std]
 * @property {number} [time_steps]
 * @property {[number, number] | null} [sensor]
 * @property {"count" | "time"} [slicing]
 * @property {"resize" | "crop"} [fit]
 * @property {boolean} [swap_axes]
 */

/** @typedef {{metric: string, split: string, value: number}} CardResult */

/**
 * @typedef {object} About
 * @property {string} title
 * @property {string} name
 * @property {string} version
 * @property {{data_set: string | null, confidence: number | null, licence: string | null, limits: string | null,
 *   results: CardResult[]}} card
 * @property {string[]} classes
 * @property {Preprocessing} preprocessing
 * @property {number} timeSteps
 * @property {number} mostSteps
 * @property {number} patchSize
 * @property {number} parameters
 * @property {Op[]} ops
 * @property {number[]} resting
 * @property {Attention[]} attention
 * @property {{macPj: number, acPj: number, twinMacs: number}} energy
 */

/**
 * A sample of the gallery; its bytes are base64.
 * @typedef {object} GalleryItem
 * @property {string} label
 * @property {string} name
 * @property {"picture" | "frames" | "recording"} kind
 * @property {number[]} [shape]
 * @property {string} bytes
 */

/**
 * What the network is shown: a picture [C][H][W], counts of events [T][2][H][W], or a recording to be sliced.
 * @typedef {object} Sample
 * @property {"picture" | "frames" | "recording"} kind
 * @property {Uint8Array | Uint16Array} [values]
 * @property {Recording} [recording]
 * @property {string} name
 * @property {string | null} label
 */

/**
 * Events in the order of time.
 * @typedef {object} Recording
 * @property {Float64Array} time microseconds
 * @property {Uint16Array} x
 * @property {Uint16Array} y
 * @property {Uint8Array} on
 * @property {[number, number]} size height and width of the sensor
 * @property {boolean} guessed the file does not say the size
 */

/**
 * What the engine is made to do, and what it is not shown.
 * @typedef {object} Changes
 * @property {string[]} silent names of neurons that do not fire
 * @property {string[]} heads as "2:0", the third attention's first head, which are off
 * @property {Record<string, number>} noise probability of a spike that was not there, by the name of the neurons
 * @property {number[]} occluded patches of the picture
 */

/**
 * How operations are counted; see cost.js.
 * @typedef {"paper" | "strict" | "entrywise"} Convention
 */

/**
 * @typedef {object} State
 * @property {number} steps T
 * @property {number} step the one that is shown, from 0
 * @property {number} confidence
 * @property {string} layer
 * @property {number} position
 * @property {number} channel
 * @property {number} attention index into `about.attention`
 * @property {number} head -1 for the mean of all
 * @property {number} query -1 for the mean of all
 * @property {Convention} convention
 * @property {Changes} changes
 */

/** @typedef {{macs: number, acs: number}} Operations */

/**
 * @typedef {object} Cost
 * @property {{name: string, density: number, steps: Record<string, Operations[]>}[]} layers by convention and step
 * @property {number} spikes
 * @property {number[]} spikesByStep
 */

/**
 * One run of the network on one input.
 * @typedef {object} Thought
 * @property {number} steps
 * @property {Float32Array[]} frames the input of every step
 * @property {Float32Array} logits
 * @property {Float32Array[]} readouts
 * @property {Float64Array[]} shares class probabilities after each step
 * @property {boolean} quiet no spike reached the head
 * @property {Map<string, Uint8Array>} spikes
 * @property {Map<string, Float32Array>} membranes
 * @property {(number: number) => Uint8Array | null} buffers
 * @property {Cost} cost
 * @property {Map<string, number>} times milliseconds by the name of the product
 * @property {number} milliseconds of the whole run
 */

export {};
