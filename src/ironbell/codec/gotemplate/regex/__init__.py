"""RE2's regular expressions, as Go's regexp package has them: no look-around, no back-references, linear time.

Python's `re` differs in syntax and classes, and can take exponential time on expressions that come with manifests.
Unicode scripts (`\\p{Greek}`) are not supported; general categories are.

Source: golang/go: src/regexp; google/re2: doc/syntax.txt.
"""

from ironbell.codec.gotemplate.regex.matcher import Regex, quote_meta
from ironbell.codec.gotemplate.regex.parser import RegexError

__all__ = ["Regex", "RegexError", "quote_meta"]
