"""The standing attack, `make torture`: kills, Ctrl-C, damages, closed outputs, hostile inputs, rivals, full disks.

Each attack is a module with a function that runs one case, chosen by a seed alone. `cases` draws
the seeds and keeps the log; `places` says which commands are attacked, and where,
`commands` runs them, and `outcomes` says whether they ended as if nothing had happened.
"""
