"""`python -m spikformer.cli`."""

import sys

from spikformer.cli import main

sys.exit(main())
