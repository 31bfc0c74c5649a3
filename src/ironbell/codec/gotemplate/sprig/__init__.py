"""Sprig's hermetic functions, one module per group.

Source: Masterminds/sprig v3.3.0: functions.go (HermeticTxtFuncMap).
"""

from collections.abc import Mapping

from ironbell.codec.gotemplate.functions import Function
from ironbell.codec.gotemplate.sprig.certificates import CERTIFICATES
from ironbell.codec.gotemplate.sprig.dates import DATES
from ironbell.codec.gotemplate.sprig.defaults import DEFAULTS
from ironbell.codec.gotemplate.sprig.dicts import DICTS
from ironbell.codec.gotemplate.sprig.encoding import ENCODING
from ironbell.codec.gotemplate.sprig.lists import LISTS
from ironbell.codec.gotemplate.sprig.numeric import NUMERIC
from ironbell.codec.gotemplate.sprig.paths import PATHS
from ironbell.codec.gotemplate.sprig.regexes import REGEXES
from ironbell.codec.gotemplate.sprig.secrets import SECRETS
from ironbell.codec.gotemplate.sprig.strings import STRINGS
from ironbell.codec.gotemplate.sprig.textcase import TEXTCASE
from ironbell.codec.gotemplate.sprig.urls import URLS
from ironbell.codec.gotemplate.sprig.versions import VERSIONS

_GROUPS = (
    CERTIFICATES,
    DATES,
    DEFAULTS,
    DICTS,
    ENCODING,
    LISTS,
    NUMERIC,
    PATHS,
    REGEXES,
    SECRETS,
    STRINGS,
    TEXTCASE,
    URLS,
    VERSIONS,
)

SPRIG: Mapping[str, Function] = {name: function for group in _GROUPS for name, function in group.items()}
