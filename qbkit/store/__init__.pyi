from .datasets import FORMAT_VERSION as FORMAT_VERSION
from .datasets import attributes_of_run as attributes_of_run
from .datasets import list_runs as list_runs
from .datasets import load_run as load_run
from .datasets import require_free as require_free
from .datasets import save_run as save_run
from .places import default_folder as default_folder
from .places import path_of as path_of
