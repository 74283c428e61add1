"""The browser that the service's page is looked at in."""

from __future__ import annotations

from tests.service.conftest import chromium

__all__ = ["chromium"]
