"""The vendors' pictures: drawn when they are asked for, of the very furniture that the feeds sell."""
