from __future__ import annotations

import pytest

from sources.repositories import LICENSES, PERMISSIVE, license_of, repository_name

MIT = "Permission is hereby granted, free of charge,\n to any person obtaining a copy"
APACHE = "                                 Apache License\n                           Version 2.0, January 2004"


def test_every_listed_licence_is_permissive_and_every_name_in_lower_case() -> None:
    assert {*LICENSES.values()} <= {*PERMISSIVE}
    assert all(repository_name(name) == name for name in LICENSES)


@pytest.mark.parametrize("name", ["psf/requests", "PSF/Requests", "psf__requests"])
def test_a_listed_repository_under_any_spelling(name: str) -> None:
    assert license_of(name) == "Apache-2.0"


@pytest.mark.parametrize(
    ("files", "spdx"),
    [
        ([("LICENSE", MIT)], "MIT"),
        ([("license.txt", APACHE)], "Apache-2.0"),
        ([("LICENSE-MIT", MIT), ("LICENSE-APACHE", APACHE)], "Apache-2.0"),
        ([("docs/LICENSE", MIT)], ""),
        ([("LICENSE", "GNU General Public License\n" + MIT)], ""),
        ([("LICENSE", MIT), ("COPYING", "GNU Lesser General Public License")], ""),
        ([("LICENSE", "All rights reserved.")], ""),
        ([], ""),
    ],
)
def test_an_unlisted_repository_by_its_licence_file(files: list[tuple[str, str]], spdx: str) -> None:
    assert license_of("some/one", files) == spdx
