"""The fields a column can have, and the words that headers use for them."""
