"""Repair a workspace: derive damaged components again from sound ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from qkvsearch._utils.callbacks import Progress, silent
from qkvsearch.errors import DamagedError, QkvError, WorkspaceError, quantity
from qkvsearch.heads.common_subjects import SubjectsComponent
from qkvsearch.heads.component import IndexComponent
from qkvsearch.heads.dense import ENCODER, DenseComponent, damaged_keys
from qkvsearch.heads.passages import PassagesComponent
from qkvsearch.heads.registry import FROM_INTERACTIONS, components_of
from qkvsearch.heads.stored_log import LogComponent
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.heads.stored_next_item import NextItemComponent
from qkvsearch.heads.stored_preferences import PreferencesComponent
from qkvsearch.learn.common_subjects import common_subjects
from qkvsearch.learn.merge import merged_contents
from qkvsearch.learn.texts import analyzed, store_head, store_words, titles_of
from qkvsearch.learn.tuned_search import stored_items
from qkvsearch.models.cold_start import fit_text_map
from qkvsearch.store import BuildContents, BuildEntry, Snapshot, Workspace
from qkvsearch.store.checksums import checksum_of, read_checksummed
from qkvsearch.store.records.recovery import repair_records
from qkvsearch.store.root import Root, read_root
from qkvsearch.store.segments import BUILD_NAME, BUILDS_FOLDER, MANIFEST
from qkvsearch.text.analyzed import AnalyzedTexts
from qkvsearch.text.encoders import LEARNED, TextEncoder, fitted_encoder

FROM_TEXTS = ("lexical", "codes", "words", "passages")


@dataclass(frozen=True)
class Repaired:
    """Result of a repair."""

    # What was derived again, and from what.
    rebuilt: list[str] = field(default_factory=list)
    # What could not be derived again.
    lost: list[str] = field(default_factory=list)
    # Everything else that was done.
    notes: list[str] = field(default_factory=list)


def repair(workspace: Workspace, progress: Progress | None = None) -> Repaired:
    """Derive damaged components again from sound ones, and publish the result. Damaged previous
    builds are removed. Raises `WorkspaceError` where no build has a sound catalog.
    """
    done, progress = Repaired(), progress or silent
    with workspace.writing("repair"):
        records = repair_records(workspace.records)
        if records.changed and records.lost == 0:
            done.notes.append(str(records))
        elif records.changed:
            done.lost.append(str(records))
        _repair_rules(workspace, done)
        root = _root(workspace, done)
        if root.erasure is not None:
            workspace.finish_erasing()
            root = replace(root, erasure=None)
        entry = next(_readable(workspace, root), None)
        if entry is None:
            raise WorkspaceError(
                f"{workspace.path}: no build has an undamaged manifest and catalog, and nothing "
                "can be derived without them; build the workspace again (records stay)"
            )
        if entry.name != root.current:
            done.lost.append(
                f"what {root.current_build.command} made as {root.current}: its manifest or its "
                f"catalog is damaged, and {entry.name} is current again"
            )
            root = Root(root.builds, entry.name)
            workspace.replace_root(root)
        with closing(Snapshot.of(workspace.path, entry)) as build:
            errors = [*build.damaged(), *damaged_keys(build)]
            damaged = {Path(error.file).name.removesuffix(".npy") for error in errors}
            if damaged:
                workspace.publish(_derived(build, damaged, done, progress), "repair")
        sound = [name for name in _sound(workspace) if name != entry.name or not damaged]
        n_dropped = workspace.drop_builds(but=sound)
        if n_dropped:
            done.notes.append(f"{quantity(n_dropped, 'damaged build')} removed")
    return done


def _repair_rules(workspace: Workspace, done: Repaired) -> None:
    """Set aside a damaged file of the owner's rules, which nothing else has."""
    try:
        workspace.rules.read()
    except DamagedError:
        kept = workspace.rules.set_aside()
        done.lost.append(
            f"the owner's rules; what is left of them is in {kept.name}: add them again"
        )


# --- builds ---


def _root(workspace: Workspace, done: Repaired) -> Root:
    """Read the root, or make a new one from the manifests of all builds."""
    with suppress(DamagedError):
        root = read_root(workspace.path)
        if root is not None:
            return root
    builds = []
    for path in (workspace.path / BUILDS_FOLDER).glob(f"*/{MANIFEST}"):
        with suppress(QkvError, LookupError, TypeError):
            content = read_checksummed(path)
            entry = BuildEntry(**{**content["build"], "manifest": checksum_of(content)})
            if BUILD_NAME.fullmatch(path.parent.name) and entry.name == path.parent.name:
                builds.append(entry)
    if not builds:
        raise WorkspaceError(
            f"{workspace.path}: no build is here that could be repaired; build it again"
        )
    builds.sort(key=lambda build: build.number)
    root = Root(builds, builds[-1].name)
    workspace.replace_root(root)
    done.rebuilt.append(
        f"root.json, from {quantity(len(builds), 'manifest')}; the newest is the current one"
    )
    return root


def _readable(workspace: Workspace, root: Root) -> Iterator[BuildEntry]:
    """Yield the builds with a sound manifest and catalog, the current one first."""
    others = [build for build in reversed(root.builds) if build.name != root.current]
    for entry in [root.current_build, *others]:
        with suppress(DamagedError), closing(Snapshot.of(workspace.path, entry)) as build:
            if len(build.rows) == build.facts["n_items"] and build.catalog.columns:
                yield entry


def _sound(workspace: Workspace) -> Iterator[str]:
    """Yield the names of the builds without damaged files."""
    for entry in workspace.builds():
        with suppress(DamagedError), closing(Snapshot.of(workspace.path, entry)) as build:
            if not build.damaged():
                yield entry.name


# --- components ---


def _derived(
    snapshot: Snapshot, damaged: set[str], done: Repaired, progress: Progress
) -> BuildContents:
    """Return a base of the sound components and of derived ones. damaged: names of arrays."""
    models = StoredModels(snapshot)
    broken = [
        component for component in components_of(snapshot) if any(map(component.owns, damaged))
    ]
    contents = merged_contents(snapshot, progress, but=broken)
    _derive_texts(contents, models, broken, damaged, done, progress)
    _derive_interactions(contents, models, broken, done, progress)
    return contents


def _derive_texts(
    contents: BuildContents,
    models: StoredModels,
    broken: list[IndexComponent],
    damaged: set[str],
    done: Repaired,
    progress: Progress,
) -> None:
    """Derive what is made of texts: the words and codes together, and each dense head."""
    groups = {component.group for component in broken if component not in FROM_INTERACTIONS}
    if not groups & {*FROM_TEXTS, *models.dense_heads}:
        return
    catalog = stored_items(models.snapshot)
    has_passages = PassagesComponent().is_in(models.snapshot)
    fields, passages = analyzed(catalog.fields(), models.analyzer, has_passages)
    main = models.main_head
    if groups & set(FROM_TEXTS):
        store_words(contents, catalog, fields, passages)
        done.rebuilt.append("words and codes, from the texts")
    for name in models.dense_heads:
        if name not in groups:
            continue
        encoder, source = _encoder(models, name, damaged, fields)
        weights = models.column_weights(name)
        has_tokens = name == main and models.has_tokens
        tuned = models.tuned_column_weights
        keys = store_head(
            contents, name, encoder, fields, progress, weights, has_tokens, tuned, passages
        )
        if SubjectsComponent(name).is_in(models.snapshot):
            subjects = common_subjects(
                encoder, keys, titles_of(catalog), models.analyzer, models.languages
            )
            SubjectsComponent(name).store(contents, subjects)
        tokens = " and its tokens" if has_tokens else ""
        done.rebuilt.append(f"{name}{tokens}, from the texts{source}")
        if name == main and encoder.is_pretrained:
            DenseComponent(main).note_texts(contents)
    if main in groups and PreferencesComponent() not in broken:
        _map_texts(contents, main)


def _encoder(
    models: StoredModels, name: str, damaged: set[str], fields: list[AnalyzedTexts]
) -> tuple[TextEncoder, str]:
    """Return the stored encoder, or one that is learned again, and a note about that."""
    if not {f"{name}.{array}" for array in ENCODER} & damaged:
        return models.encoder(name), ""
    # What is loaded is the model that the build was made with.
    choice, language = models.snapshot.facts["encoder"], models.analyzer.language
    encoder = fitted_encoder(name, fields, choice, language=language)
    how = "learned from" if name in LEARNED else "fitted to"
    return encoder, f", by an encoder {how} them again"


def _map_texts(contents: BuildContents, main: str) -> None:
    """Fit the matrix that places cold items to the new keys."""
    preferences = PreferencesComponent()
    if preferences.is_pending(contents, "item_embeddings"):
        embeddings = preferences.pending(contents, "item_embeddings")
        keys = DenseComponent(main).pending(contents, "keys")
        preferences.put(contents, text_map=fit_text_map(np.asarray(keys), embeddings))


def _derive_interactions(
    contents: BuildContents,
    models: StoredModels,
    broken: list[IndexComponent],
    done: Repaired,
    progress: Progress,
) -> None:
    learned = [*FROM_INTERACTIONS, NextItemComponent()]
    if LogComponent() in broken:
        n = models.snapshot.facts.get("n_interactions", 0)
        for component in learned:
            component.drop(contents)
        for name in ("n_users", "n_interactions"):
            contents.facts.pop(name, None)
        done.lost.append(
            f"the log of {quantity(n, 'interaction')} and what was learned from it; "
            "what was recorded stays: build again with `interactions`"
        )
        return
    for component in learned:
        if component not in broken:
            continue
        try:
            component.learn(contents, models.log("learn from"), progress)
            done.rebuilt.append(f"{component.group}, learned from the log again")
        except QkvError as error:
            component.drop(contents)
            done.lost.append(f"{component.group}: {error}")
