"""Pictures for people: tiles of images and events, contact sheets of them, and their files."""

from spikformer.visualise.contact_sheet import Row, contact_sheet
from spikformer.visualise.saving import check_picture_path, save_picture
from spikformer.visualise.tiles import EVENT_LEGEND, brightest_count, event_tile, image_tile, tile_side

__all__ = [
    "EVENT_LEGEND",
    "Row",
    "brightest_count",
    "check_picture_path",
    "contact_sheet",
    "event_tile",
    "image_tile",
    "save_picture",
    "tile_side",
]
