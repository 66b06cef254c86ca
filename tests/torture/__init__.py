"""Commands that die, `make torture`: at each of their changes of files, then continued, and compared with one that never died.

`scenarios` lists the commands, `dying` counts the changes and kills, `crashes` runs a case, `outcomes` compares the files.
"""
