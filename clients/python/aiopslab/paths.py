"""Where files are."""

import os
from pathlib import Path

HOME_DIR = Path.home()
BASE_DIR = Path(__file__).resolve().parent
BASE_PARENT_DIR = BASE_DIR.parent

# What is written goes below the working directory, not into an installed package.
DATA_DIR = Path(os.environ.get("AIOPSLAB_DATA_DIR") or Path.cwd() / "data")
RESULTS_DIR = DATA_DIR / "results"
PLOTS_DIR = DATA_DIR / "plots"
CACHE_DIR = HOME_DIR / "cache_dir"
