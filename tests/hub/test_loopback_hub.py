"""The Hub of the tests answers the real clients as the real one does, as far as truegap relies on it."""

from __future__ import annotations

import threading
from io import BytesIO

import pytest
from huggingface_hub import (
    CommitOperationAdd,
    CommitOperationDelete,
    HfApi,
    hf_hub_download,
    snapshot_download,
)
from huggingface_hub.errors import HfHubHTTPError, RemoteEntryNotFoundError, RepositoryNotFoundError

from loopback_hub import LARGE, READER_TOKEN, TOKEN, User

BIG = bytes(range(256)) * (LARGE // 256 + 10)


def api(hub, token: str | None = TOKEN) -> HfApi:
    return HfApi(endpoint=hub.endpoint, token=token or False)


def add(path: str, data: bytes) -> CommitOperationAdd:
    return CommitOperationAdd(path, data)


def test_files_come_back_as_they_were_committed(loopback_hub, tmp_path):
    hub, repository = api(loopback_hub), "org/set"
    assert hub.create_repo(repository, repo_type="dataset").repo_id == repository
    hub.create_repo(repository, repo_type="dataset", exist_ok=True)
    files = {"README.md": b"---\nlicense: mit\n---\nA card.\n", "data/big.bin": BIG, "data/deep/b.csv": b"1,2\n"}
    first = hub.create_commit(
        repository, [add(*each) for each in files.items()], commit_message="one", repo_type="dataset"
    )
    hub.create_tag(repository, tag="v1.0.0", repo_type="dataset", revision=first.oid)
    changes = [add("data/deep/b.csv", b"3,4\n"), CommitOperationDelete("data/big.bin"), add("data/c.bin", BIG[:-1])]
    second = hub.create_commit(repository, changes, commit_message="two", repo_type="dataset")

    folder = snapshot_download(repository, repo_type="dataset", revision="v1.0.0", local_dir=tmp_path / "v1")
    for path, data in files.items():
        assert (tmp_path / "v1" / path).read_bytes() == data, folder
    newest = hub.list_repo_files(repository, repo_type="dataset")
    assert newest == [".gitattributes", "README.md", "data/c.bin", "data/deep/b.csv"]
    info = hub.dataset_info(repository, files_metadata=True)
    assert (info.sha, info.card_data.license) == (second.oid, "mit")
    assert {each.rfilename: each.size for each in info.siblings}["data/c.bin"] == len(BIG) - 1
    assert [each.title for each in hub.list_repo_commits(repository, repo_type="dataset")] == [
        "two", "one", "initial commit",
    ]  # fmt: skip
    refs = hub.list_repo_refs(repository, repo_type="dataset")
    assert [(each.name, each.target_commit) for each in refs.tags] == [("v1.0.0", first.oid)]
    [entry] = hub.get_paths_info(repository, "data/c.bin", repo_type="dataset")
    assert entry.lfs is not None
    # large files went to the other host, which saw no token
    assert {place for place, token in loopback_hub.tokens} <= {"api", "datasets"}


def test_the_same_again_is_no_commit(loopback_hub):
    hub = api(loopback_hub)
    hub.create_repo("org/model")
    operations = {"a.bin": BIG, "config.json": b"{}"}
    first = hub.create_commit("org/model", [add(*each) for each in operations.items()], commit_message="one")
    again = hub.create_commit("org/model", [add(*each) for each in operations.items()], commit_message="two")
    assert again.oid == first.oid


def test_a_commit_on_another_parent_is_refused_whole(loopback_hub):
    hub = api(loopback_hub)
    hub.create_repo("org/queue", repo_type="dataset")
    parent = hub.dataset_info("org/queue").sha
    refused = []

    def write(number: int) -> None:
        try:
            hub.create_commit(
                "org/queue",
                [add(f"{number}.json", b"{}")],
                commit_message=f"{number}",
                parent_commit=parent,
                repo_type="dataset",
            )
        except HfHubHTTPError as error:
            refused.append((error.response.status_code, "A commit has happened since" in str(error)))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused == [(412, True)] * 4
    assert len(loopback_hub.files("dataset", "org/queue")) == 2


def test_a_tag_does_not_move(loopback_hub):
    hub = api(loopback_hub)
    hub.create_repo("org/set", repo_type="dataset")
    hub.create_tag("org/set", tag="v1", repo_type="dataset")
    with pytest.raises(HfHubHTTPError) as caught:
        hub.create_tag("org/set", tag="v1", repo_type="dataset")
    assert caught.value.response.status_code == 409
    hub.delete_tag("org/set", tag="v1", repo_type="dataset")
    assert not hub.list_repo_refs("org/set", repo_type="dataset").tags


def test_anybody_known_may_open_a_pull_request_and_no_more(loopback_hub):
    loopback_hub.users["hf_aVisitor"] = User("visitor")
    loopback_hub.commit("model", "org/model", {"config.json": b"{}"})
    hub = api(loopback_hub, "hf_aVisitor")
    opened = hub.create_commit("org/model", [add("x.yaml", b"a: 1")], commit_message="results", create_pr=True)
    assert (opened.pr_num, opened.pr_revision) == (1, "refs/pr/1")
    assert loopback_hub.files("model", "org/model", "refs/pr/1") == {"config.json": b"{}", "x.yaml": b"a: 1"}
    assert loopback_hub.files("model", "org/model") == {"config.json": b"{}"}
    with pytest.raises(HfHubHTTPError, match="don't have the rights"):
        hub.create_commit("org/model", [add("x.yaml", b"a: 1")], commit_message="results")


@pytest.mark.parametrize(("token", "status"), [(None, 401), ("hf_unknown", 401), (READER_TOKEN, 403)])
def test_who_may_not_write_is_told_so(loopback_hub, token, status):
    with pytest.raises(HfHubHTTPError) as caught:
        api(loopback_hub, token).create_repo("org/set", repo_type="dataset")
    assert caught.value.response.status_code == status
    assert not loopback_hub.repositories


def test_a_private_repository_is_its_organizations(loopback_hub):
    api(loopback_hub).create_repo("org/set", repo_type="dataset", private=True)
    loopback_hub.users["hf_aVisitor"] = User("visitor")
    loopback_hub.users["hf_aMember"] = User("member", ("org",))
    for token in (None, "hf_aVisitor"):
        with pytest.raises(RepositoryNotFoundError):
            api(loopback_hub, token).dataset_info("org/set")
    assert api(loopback_hub, "hf_aMember").dataset_info("org/set").private
    assert api(loopback_hub, "hf_aMember").whoami()["orgs"][0]["name"] == "org"


def test_what_is_not_there_is_told_from_what_is(loopback_hub):
    loopback_hub.commit("dataset", "org/set", {"a": b"a"})
    with pytest.raises(RemoteEntryNotFoundError):
        hf_hub_download("org/set", "b", repo_type="dataset")
    assert api(loopback_hub).file_exists("org/set", "a", repo_type="dataset")
    assert not api(loopback_hub).repo_exists("org/other", repo_type="dataset")
    api(loopback_hub).delete_repo("org/set", repo_type="dataset")
    assert not loopback_hub.repositories


def test_an_upload_that_fails_leaves_no_commit(loopback_hub):
    hub = api(loopback_hub)
    hub.create_repo("org/set", repo_type="dataset")
    loopback_hub.failing["PUT /upload/"] = 400
    operations = [add("a.csv", b"1"), CommitOperationAdd("b.bin", BytesIO(BIG))]
    with pytest.raises(RuntimeError, match=r"Error while uploading 'b\.bin'"):
        hub.create_commit("org/set", operations, commit_message="one", repo_type="dataset")
    assert len(loopback_hub.repositories["dataset", "org/set"].commits) == 1
