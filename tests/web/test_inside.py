"""What `/inside` shows: info and builds."""

import re
import shutil

import qkvsearch


def test_info_and_builds_are_those_of_the_engine(client, videos):
    info = videos.info()
    info.pop("workspace")
    for column in info["interaction_columns"]:
        column["example"] = ""
    assert client.get("/api/v1/info").json() == info
    assert client.get("/api/v1/builds").json()["rows"] == videos.builds().to_records()


def test_health_says_when_it_was_built(client, videos):
    assert client.get("/api/v1/health").json()["built"] == videos.info()["built"]


def test_a_damaged_build_is_named_and_no_file(asking, videos_path, tmp_path, caplog):
    copy = tmp_path / "workspace"
    shutil.copytree(videos_path, copy)
    with qkvsearch.open(copy) as engine:
        engine.remove(["v001"])
        later = engine.builds().to_records()[0]["id"]
        engine.rollback()
    manifest = copy / "builds" / later / "manifest.json"
    manifest.write_bytes(manifest.read_bytes()[:-9])
    with asking(copy) as client:
        found = client.get("/api/v1/builds").json()
    assert len(found["notes"]) == 1
    assert later in found["notes"][0]
    assert not {"/", "manifest"} & set(re.findall(r"/|\w+", found["notes"][0]))
    assert "manifest" in caplog.text
