"""What the columns of a source's files mean: proposed by runs, confirmed by people, learned from."""
