#!/usr/bin/env bash
# Guess: --config.names=fog,snow sets a tuple of two names, as --config.levels=3,4 sets a tuple of
#        two numbers; --config.name=None unsets a string.
# Seen:  ("fog,snow",), one name; ("(fog,snow)",) for (fog,snow); and "None", four letters. Numbers
#        are split at the comma. "('fog','snow')" gives two names.
# Hurts: an evaluation "of fog and snow" looks for a corruption called fog,snow, and a code that
#        takes any name skips both; a path that should be unset is a folder called None.
# Do:    write names as a Python tuple in quotes.
# With:  ml_collections 1.1.0, absl-py 2.5.1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'ml_collections==1.1.0' 'absl-py==2.5.1'
cat > check.py <<'EOF'
import json
import subprocess
import sys

READ = """
import json
import ml_collections
from absl import app
from ml_collections import config_flags

settings = ml_collections.ConfigDict({"names": ("contrast",), "levels": (1, 2), "name": "a"})
config = config_flags.DEFINE_config_dict("config", settings)
app.run(lambda argv: print(json.dumps(config.value.to_dict())))
"""


def read(flag):
    found = json.loads(subprocess.run([sys.executable, "-c", READ, flag], check=True, capture_output=True).stdout)
    print(f"{flag:34}", found)
    return found


assert read("--config.names=fog,snow")["names"] == ["fog,snow"]
assert read("--config.names=(fog,snow)")["names"] == ["(fog,snow)"]
assert read("--config.names=('fog','snow')")["names"] == ["fog", "snow"]
assert read("--config.levels=3,4")["levels"] == [3, 4]
assert read("--config.name=None")["name"] == "None"
EOF
venv/bin/python check.py
