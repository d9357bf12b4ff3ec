"""CEL as Kubernetes has it: what holds, what does not, and what fails on an object."""

from __future__ import annotations

from typing import Any

import pytest

from bellhop.celbox import CelRuntimeError, CelSyntaxError, Rule

SERVICE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {
        "name": "web",
        "namespace": "shop",
        "labels": {"app": "web", "tier": "front", "example.com/team": "blue"},
        "creationTimestamp": "2026-03-01T10:00:00Z",
    },
    "spec": {
        "type": "LoadBalancer",
        "replicas": 3,
        "weight": 0.5,
        "ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443}],
        "limits": {"cpu": "1500m", "memory": "1.5Gi"},
        "cidr": "10.0.0.0/8",
        "none": None,
        "on": True,
    },
    "status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.7"}]}},
}

HOLD = """
true
resource.kind == 'Service'
resource['kind'] == "Service"
resource.metadata.labels['example.com/team'] == 'blue'
'app' in resource.metadata.labels
!('gone' in resource.metadata.labels)
has(resource.status.loadBalancer.ingress)
!has(resource.spec.selector)
has(resource.spec.none) && resource.spec.none == null
resource.spec.on
resource.spec.replicas == 3
resource.spec.replicas == 3.0
resource.spec.replicas > 2.5
resource.spec.replicas * 2 + 1 == 7
resource.spec.replicas % 2 == 1 && resource.spec.replicas / 2 == 1
-resource.spec.replicas < 0
resource.spec.weight < 1
resource.spec.weight == 0.5
double(resource.spec.replicas) + resource.spec.weight == 3.5
int(resource.spec.weight * 10.0) == 5
uint(3) == 3u
size(resource.spec.ports) == 2
resource.spec.ports.size() == 2
size(resource.metadata.name) == 3
size('äöü') == 3
size(resource.metadata.labels) == 3
resource.spec.ports.exists(p, p.port == 443)
resource.spec.ports.all(p, p.port < 1000)
resource.spec.ports.exists_one(p, p.name == 'http')
resource.spec.ports.map(p, p.port) == [80, 443]
resource.spec.ports.map(p, p.port > 100, p.name) == ['https']
resource.spec.ports.filter(p, p.port > 100)[0].name == 'https'
resource.metadata.labels.exists(k, k.endsWith('/team'))
resource.metadata.labels.all(k, resource.metadata.labels[k] != '')
[1, 2, 3].exists(x, [3, 4].exists(y, x == y))
443 in resource.spec.ports.map(p, p.port)
resource.spec.type in ['LoadBalancer', 'NodePort']
resource.metadata.name.startsWith('w')
resource.metadata.name.contains('e') && resource.metadata.name.endsWith('b')
resource.metadata.name.matches('^[a-z]+$')
!'web-1'.matches('^[a-z]+$')
resource.metadata.namespace + '/' + resource.metadata.name == 'shop/web'
[1, 2] + [3] == [1, 2, 3]
{'a': 1}.a == 1
resource.spec.replicas > 5 ? false : true
resource.spec.missing == 1 || true
!(false && resource.spec.missing == 1)
type(resource.kind) == string && type(1) == int
string(1) == '1' && int('42') == 42 && bool('true')
bytes('abc') == b'abc'
timestamp(resource.metadata.creationTimestamp).getFullYear() == 2026
timestamp(resource.metadata.creationTimestamp) < timestamp('2027-01-01T00:00:00Z')
timestamp('2026-03-01T10:00:00Z') + duration('24h') == timestamp('2026-03-02T10:00:00Z')
duration('90m') > duration('1h') && duration('90m').getHours() == 1
r'\\d' == '\\\\d'
'''three
lines'''.contains('lines')
dyn(1) == 1.0 && dyn(1) == 1u
dyn(1) < 2u
'Web'.lowerAscii() == 'web' && 'web'.upperAscii() == 'WEB'
'a,b'.split(',') == ['a', 'b'] && ['a', 'b'].join('-') == 'a-b'
'web'.replace('w', 'v') == 'veb' && 'web'.charAt(1) == 'e'
'web'.substring(1) == 'eb' && 'web'.indexOf('b') == 2 && 'webw'.lastIndexOf('w') == 3
'  web '.trim() == 'web' && 'abc'.reverse() == 'cba'
'%s has %d'.format(['web', 2]) == 'web has 2'
[1, 2, 2].isSorted() && !['b', 'a'].isSorted() && [].isSorted()
[1, 2, 3].sum() == 6 && [0.5, 0.5].sum() == 1.0 && [].sum() == 0
resource.spec.ports.map(p, p.port).max() == 443 && [3, 1].min() == 1
['b', 'a'].min() == 'a'
'port 443'.find('[0-9]+') == '443' && 'port'.find('[0-9]+') == ''
'a1b22'.findAll('[0-9]+') == ['1', '22'] && 'a1b22'.findAll('[0-9]+', 1) == ['1']
quantity(resource.spec.limits.cpu).isGreaterThan(quantity('1'))
quantity(resource.spec.limits.memory).isLessThan(quantity('2G'))
quantity('1') == quantity('1000m') && quantity('1Ki') == quantity('1024')
quantity('1.5').add(quantity('500m')).asInteger() == 2
quantity('2k').sub(1000).compareTo(quantity('1e3')) == 0
quantity('-1').sign() == -1 && !quantity('50m').isInteger()
quantity('50m').asApproximateFloat() == 0.05
isQuantity('1.5Gi') && !isQuantity('1.5GiB') && !isQuantity('')
ip(resource.status.loadBalancer.ingress[0].ip).family() == 4
isIP('::1') && !isIP('10.0.0.01') && !isIP('::ffff:1.2.3.4') && !isIP('fe80::1%eth0')
ip('2001:DB8::1') == ip('2001:db8::1') && ip.isCanonical('2001:db8::1')
ip('127.0.0.1').isLoopback() && ip('0.0.0.0').isUnspecified() && ip('10.0.0.1').isGlobalUnicast()
ip('169.254.1.1').isLinkLocalUnicast() && ip('224.0.0.1').isLinkLocalMulticast()
ip('ff02::1').isLinkLocalMulticast() && !ip('255.255.255.255').isGlobalUnicast()
cidr(resource.spec.cidr).containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))
cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR('10.0.0.0/8')
cidr('10.0.0.0/8').containsCIDR(cidr('10.1.0.0/16')) && !cidr('10.0.0.0/8').containsCIDR('::/0')
cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && cidr('10.1.2.3/8').ip() == ip('10.1.2.3')
cidr('10.0.0.0/8').prefixLength() == 8 && isCIDR('::/0') && !isCIDR('10.0.0.0')
url('https://me@example.com:8080/a%20b?x=1&x=2').getHost() == 'example.com:8080'
url('https://example.com:8080/').getHostname() == 'example.com'
url('https://[::1]:80/').getHostname() == '::1' && url('https://[::1]:80/').getPort() == '80'
url('https://example.com/').getScheme() == 'https' && url('/a').getScheme() == ''
url('https://example.com/a%20b').getEscapedPath() == '/a%20b'
url('https://example.com/?x=1&x=2').getQuery()['x'] == ['1', '2']
isURL('/path') && !isURL('example.com') && !isURL('https://a b') && !isURL('https://a/%zz')
semver('1.2.3').isLessThan(semver('1.10.0')) && semver('1.0.0').isGreaterThan(semver('1.0.0-rc.1'))
semver('1.0.0-alpha.2').compareTo(semver('1.0.0-alpha.10')) == -1
semver('1.2.3').major() == 1 && semver('1.2.3').minor() == 2 && semver('1.2.3').patch() == 3
isSemver('1.2.3-rc.1+build') && !isSemver('v1.2.3') && !isSemver('1.2')
"""

FAIL = {
    "resource.spec.missing == 1": 'Key not found in map : "missing"',
    "resource.spec.ports[7].port == 1": "Index error: index=7 size=2",
    "resource.spec.replicas / 0 == 1": "divide by zero",
    "resource.spec.replicas + resource.spec.weight == 3.5": "No matching overloads",
    "9223372036854775807 + resource.spec.replicas > 0": "overflow",
    "resource.kind.matches('(')": "missing \\)",
    "resource.kind": "it gave a string, and must be true or false",
    "resource.spec.replicas": "it gave an int, and must be true or false",
    "resource": "it gave a map, and must be true or false",
    "resource.spec.none": "it gave a null, and must be true or false",
    "resource.kind > 1": "No matching overloads",
    "timestamp(resource.kind) > timestamp('2026-01-01T00:00:00Z')": "Timestamp conversion",
    "int(resource.kind) == 1": "Service|convert|int",
    "quantity(resource.kind) == quantity('1')": "must match the form 500m, 1.5Gi or 3e2",
    "quantity('0.5').asInteger() == 0": "cannot be represented as an integer",
    "ip(resource.kind).family() == 4": "this is not an IP address",
    "cidr('10.0.0.0/33').prefixLength() == 1": "33",
    "url(resource.kind).getScheme() == ''": "this is neither an absolute URL",
    "semver(resource.kind).major() == 1": "this is not a semantic version",
    "ip('10.0.0.1').sign() == 1": "this is not a quantity",
    "resource.metadata.labels.getScheme() == ''": "this is not a URL",
    "[].max() == 1": r"max\(\) called on an empty list",
    "[dyn(1), 'a'].isSorted()": "cannot be compared",
    "[dyn(1), 'a'].sum() == 1": "numbers of one kind",
    "[duration('1m')].max() == duration('1m')": "cannot be durations or times",
    "resource.kind.find('(') == ''": "invalid regular expression",
}

REFUSED = {
    "": (1, 1, "it ends too early"),
    "1 +": (1, 4, "it ends too early"),
    "resource.kind == 'Service": (1, 18, "token recognition error"),
    "resource.kind = 'Service'": (1, 15, "token recognition error"),
    "resource.kind ==\n  kind": (2, 3, "undeclared reference to 'kind'"),
    "self.kind == 'x'": (1, 5, "undeclared reference to 'self.kind'"),
    "object == 'x'": (1, 1, "undeclared reference to 'object'"),
    "resource.name.shout()": (1, 20, "undeclared reference to 'shout'"),
    "1 + 'a' == 2": (1, 3, "found no matching overload for '_\\+_'"),
    "size(1) == 1": (1, 5, "found no matching overload for 'size'"),
    "resource.ports.map(1, 2) == []": (1, 20, "must be a simple identifier"),
    "1": (1, 1, "it gives an int, and must be true or false"),
    "'yes'": (1, 1, "it gives a string, and must be true or false"),
    "[true]": (1, 1, "it gives a list, and must be true or false"),
    "quantity('1')": (1, 1, "it gives a map, and must be true or false"),
    "'x'.family() == 4": (1, 11, "found no matching overload for 'family'"),
    "true;": (1, 5, "token recognition error"),
    "true false": (1, 6, "extraneous input|mismatched input"),
    "cel.bind(x, 1, x == 1)": (1, 10, "undeclared reference"),
    "resource.?kind.orValue('') == ''": (1, 1, "unsupported syntax"),
}


def rules(text: str) -> list[str]:
    """Return the rules of a table; what is quoted three times may have several lines."""
    found: list[str] = []
    for line in text.strip().split("\n"):
        if found and found[-1].count("'''") == 1:
            found[-1] += f"\n{line}"
        else:
            found.append(line)
    return found


@pytest.mark.parametrize("text", rules(HOLD))
def test_holds(text: str) -> None:
    """Each of these is true of the Service."""
    assert Rule(text).holds(SERVICE)


@pytest.mark.parametrize("text", rules(HOLD)[1:])
def test_holds_no_more_when_it_is_denied(text: str) -> None:
    """A rule does not hold because it is compiled, but because it is true."""
    assert not Rule(f"!({text})").holds(SERVICE)


@pytest.mark.parametrize(("text", "wording"), FAIL.items())
def test_fails_on_an_object(text: str, wording: str) -> None:
    """What is not there, cannot be computed or is no bool is an error, in the runtime's words."""
    with pytest.raises(CelRuntimeError, match=wording) as caught:
        Rule(text, name="mine").holds(SERVICE)

    assert str(caught.value).startswith("mine: ")
    assert caught.value.plain == "mine: the rule fails on this object"


@pytest.mark.parametrize(("text", "expected"), REFUSED.items())
def test_refuses_what_is_no_rule(text: str, expected: tuple[int, int, str]) -> None:
    """It says in one line what is wrong, and in which line and column."""
    line, column, wording = expected

    with pytest.raises(CelSyntaxError, match=wording) as caught:
        Rule(text, name="mine")

    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).startswith(f"mine:{line}:{column}: ")
    assert "\n" not in str(caught.value)
    assert "INVALID_ARGUMENT" not in str(caught.value)


def test_takes_texts_that_are_no_unicode() -> None:
    """Half a surrogate pair, which JSON can hold and UTF-8 cannot, is U+FFFD."""
    assert Rule("resource.a == '\\ufffd' && resource.b").holds({"a": "\ud800", "b": True})
    assert Rule("resource.m == {'\\ufffd': ['\\ufffd!']}").holds({"m": {"\udfff": ["\ud800!"]}})


def test_takes_numbers_as_they_are() -> None:
    """Integers up to 64 bits stay integers, signed or not; what is larger is an error."""
    assert Rule("resource.n == 9007199254740993").holds({"n": 2**53 + 1})
    assert Rule("resource.n == 18446744073709551615u").holds({"n": 2**64 - 1})
    with pytest.raises(CelRuntimeError, match="out of range"):
        Rule("resource.n > 0").holds({"n": 2**64})


def test_rejects_what_is_no_json() -> None:
    """An object that could not have come from an API server is the caller's mistake."""
    for value in (object(), Rule, 1j):
        with pytest.raises((TypeError, CelRuntimeError)):
            Rule("resource.a == 1").holds({"a": value})
