"""The standing attack, `make torture`: kills, Ctrl-C, damages, closed outputs, hostile inputs, rivals, full disks.

Each attack is a module with a function that runs one case, chosen by a seed alone. `cases` draws
the seeds and keeps the log; `scenarios` says which commands are attacked, `places` where,
`commands` runs them, and `comparing` says whether they ended as if nothing had happened.
"""
