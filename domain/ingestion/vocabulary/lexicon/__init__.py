"""Words of headers in a dozen languages, and the concept that each stands for.

Entries are `(concept, "word|word|two words|stem*")`: lower case with accents; a trailing `*` allows for endings of at
most eight letters. Words of one concept are listed in the order English, German, French, Dutch, Spanish and Portuguese,
Italian, Nordic languages, Polish and Czech, Russian.
"""
