import json
import pathlib


def settings():
    path = pathlib.Path("settings.json")
    return json.loads(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    print(settings()["name"])
