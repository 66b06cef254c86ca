"""What every command stands on: devices, processes, folders of results, files. Knows neither models
nor corruptions.

artifacts.py    state: arrays and a record of what they were made from, refused when damaged or edited
chips/          chips that are not there, and what their compilers say of programs for them
command.py      flags alone on the command line, foreseen errors and Ctrl-C in one line, how a command was called
compiles.py     how often XLA compiled each program, and the cache of compiled programs on disk
distributed.py  one program in many processes: who they are, what they agree on, what process 0 tells
files.py        the one atomic writer, guarded readers of arrays and JSON, folders with one writer
imports.py      modules of the user's that commands import first
log.py          the project's own log
meshes.py       the device mesh, and how arrays lie on it
preemption.py   SIGTERM and Ctrl-C while training: saves, then ends
progress.py     one progress bar for every long command
provenance.py   what a result came from: revision, versions, devices, command, inputs
schema.py       what is known of a setting: type, range, meaning; checks and lists
shapes.py       what a JSON file must hold for its reader, and where it differs
settings.py     settings that must equal those stored with earlier results
workdirs.py     a folder of one run or study: its lock, config and provenance
"""
