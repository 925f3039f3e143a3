"""Reading usage, refusing what a plan does not include, and folding what was counted."""
