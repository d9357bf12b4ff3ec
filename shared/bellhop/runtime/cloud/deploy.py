"""The handlers of the stage `deploy` in a function; charts have a function of their own."""

from __future__ import annotations

from bellhop.catalog.cache import Catalogs
from bellhop.configuration.notifier import StatusNotifier
from bellhop.ports.kube import Access
from bellhop.ports.tools import Tools
from bellhop.runtime.cloud.reconciler import LateDownloads, make_reconciler
from bellhop.runtime.cloud.resources import Resources
from bellhop.runtime.handlers import Handlers
from bellhop.runtime.handlers.configuration import CLOUD, make_status_handler
from bellhop.runtime.handlers.deploy import make_deploy_table
from bellhop.state.messages import WriteStatus


def make_deploy_handlers(here: Resources, access: Access) -> Handlers:
    """Return the handlers of all messages of the stage."""
    catalogs = Catalogs(here.records)
    tools = Tools(files=LateDownloads(here.contents, here.records.clock))
    reconciler = make_reconciler(here, catalogs, access, tools)
    table = make_deploy_table(here.records, catalogs, here.publisher, here.settings, reconciler)
    given = here.records, catalogs, access, here.settings, here.log
    table[WriteStatus] = make_status_handler(*given, pause=CLOUD)
    follow = StatusNotifier(here.records, catalogs, here.publisher).follow
    return Handlers("deploy", table, follow)
