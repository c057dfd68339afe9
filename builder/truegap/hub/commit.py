"""A repository on the Hub as a folder that many write to: a commit is taken only if nobody else committed meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from truegap.errors import UserError, first_line
from truegap.hub.snapshots import Kind, reason_of, without_secrets
from truegap.hub.tokens import Owner
from truegap.hub.tree import Held, tree

_CONFLICT = (409, 412)
"""What the Hub answers when the branch is not where it was, or when it is busy with another commit to it."""


class MovedError(Exception):
    """Somebody else has committed since: read again, then try again."""


class AbsentError(UserError):
    """There is no such repository, or none that this user may see."""


@dataclass(frozen=True, slots=True)
class Repository:
    """One repository.

    Attributes:
        name: `ORG/NAME`.
        kind: Dataset or model.
        token: As huggingface_hub takes it: None for the user's own, False for none at all.
    """

    name: str
    kind: Kind = "dataset"
    token: bool | None = None

    def head(self) -> str:
        """The newest commit of the main branch.

        Raises:
            AbsentError: There is no such repository.
            UserError: The Hub cannot be asked; one line with the remedy.
        """
        with self._readable_errors():
            return str(self._api().repo_info(self.name, repo_type=self.kind, token=self.token).sha)

    def create(self) -> None:
        """Makes the repository if it is not there; it is public.

        Raises:
            UserError: The user may not.
        """
        with self._readable_errors():
            self._api().create_repo(self.name, repo_type=self.kind, exist_ok=True, token=self.token)

    def files(self, commit: str) -> dict[str, Held]:
        """Every file of a commit, by its path.

        Raises:
            UserError: The Hub cannot be asked.
        """
        with self._readable_errors():
            return tree(self.name, self.kind, commit, self.token)

    def read(self, path: str, commit: str, *, limit: int, start: int = 0) -> bytes | None:
        """At most `limit` bytes of a file from `start` on; None if it is not there. No more is brought over.

        Raises:
            UserError: The Hub cannot be asked.
        """
        from huggingface_hub import errors, hf_hub_url
        from huggingface_hub import utils as utilities

        client: Any = utilities  # its types do not tell what it exports
        url = hf_hub_url(self.name, path, repo_type=self.kind, revision=commit)
        headers = client.build_hf_headers(token=self.token) | {
            "Range": f"bytes={start}-{start + limit - 1}",
            "Accept-Encoding": "identity",
        }
        with self._readable_errors(), client.get_session().stream("GET", url, headers=headers, timeout=60) as response:
            if response.status_code == 416:  # noqa: PLR2004  # nothing from there on
                return b""
            if response.is_error:
                response.read()
            try:
                client.hf_raise_for_status(response)
            except errors.RemoteEntryNotFoundError:
                return None
            # A server may answer with the whole file.
            skip = start if response.status_code == 200 else 0  # noqa: PLR2004
            return _first(response.iter_bytes(), skip, limit)

    def commit(self, files: Mapping[str, bytes], parent: str, message: str) -> str:
        """Writes files in one commit on top of `parent`; all of them or none.

        Returns:
            The new commit.

        Raises:
            MovedError: The main branch is not at `parent` any more; nothing was written.
            UserError: The user may not write, or the Hub cannot be asked.
        """
        from huggingface_hub import CommitOperationAdd
        from huggingface_hub.errors import HfHubHTTPError

        operations = [CommitOperationAdd(path, data) for path, data in files.items()]
        with self._readable_errors():
            try:
                done = self._api().create_commit(
                    self.name,
                    operations,
                    commit_message=message,
                    repo_type=self.kind,
                    parent_commit=parent,
                    token=self.token,
                )
            except HfHubHTTPError as error:
                if error.response.status_code in _CONFLICT:
                    raise MovedError from None
                raise
        # The client sends no commit that would change nothing: then another one wrote the same bytes just now.
        if not any(getattr(each, "_is_committed", True) for each in operations):
            raise MovedError
        return str(done.oid)

    def _api(self) -> Any:
        from huggingface_hub import HfApi

        return HfApi()

    @contextmanager
    def _readable_errors(self) -> Iterator[None]:
        import httpx2
        from huggingface_hub import errors

        try:
            yield
        except errors.RepositoryNotFoundError as error:
            raise AbsentError(f"{self.kind} {self.name}: {reason_of(error, self.name, self.kind)}") from None
        except (httpx2.HTTPError, OSError, ValueError) as error:
            raise UserError(f"{self.kind} {self.name}: {reason_of(error, self.name, self.kind)}") from None


def _first(chunks: Iterator[bytes], skip: int, limit: int) -> bytes:
    kept = bytearray()
    for chunk in chunks:
        kept += chunk
        if len(kept) >= skip + limit:
            break
    return bytes(kept[skip : skip + limit])


def whose_token() -> str:
    """The name of the user that the token on this machine belongs to.

    Raises:
        UserError: There is no token, or the Hub does not accept it.
    """
    return own_account().name


def own_account() -> Owner:
    """The user that the token on this machine belongs to, with the organisations.

    Raises:
        UserError: There is no token, or the Hub does not accept it.
    """
    import httpx2
    from huggingface_hub import HfApi, errors

    try:
        told = HfApi().whoami()
        return Owner(str(told["name"]), tuple(str(each["name"]) for each in told.get("orgs") or ()))
    except errors.LocalTokenNotFoundError:
        raise UserError("you are not logged in: `hf auth login`") from None
    except (httpx2.HTTPError, OSError, ValueError, KeyError) as error:
        raise UserError(f"the Hub does not say who you are: {without_secrets(first_line(error))}") from None
