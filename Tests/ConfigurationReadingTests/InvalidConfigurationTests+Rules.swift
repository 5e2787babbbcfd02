// The rows about rules.
extension InvalidConfigurationTests {
    static let rules: [Row] = [
        .more(
            "rules:\n  - { match: { path: /a }, mode: off }",
            "p.yaml:7: rules[0].id: found no such key; use id:"
        ),
        .more(
            "rules:\n  - { id: a, mode: off }",
            "p.yaml:7: a.match: found no such key; use match:"
        ),
        .more(
            "rules:\n  - { id: default, match: { path: /a }, mode: off }",
            "p.yaml:7: rules[0].id: found \"default\"; use 1…64 letters"
        ),
        .more(
            "rules:\n  - { id: \"a b\", match: { path: /a }, mode: off }",
            "p.yaml:7: rules[0].id: found \"a b\"; use 1…64 letters"
        ),
        .rule(
            "origin: shop",
            "p.yaml:7: a.mode: found no such key; use mode: off | observe | enforce"
        ),
        .rule("mode: on", "p.yaml:7: a.mode: found \"on\"; use off | observe | enforce"),
        .rule(
            "mode: enforced",
            """
            p.yaml:7: a.mode: found "enforced"; use off | observe | enforce | deny (did \
            you mean enforce?)
            """
        ),
        .rule(
            "mode: off, origin: shpo",
            """
            p.yaml:7: a.origin: found the unknown origin "shpo"; use shop | media (did \
            you mean shop?)
            """
        ),
        .rule(
            "mode: enforce, sign: [method, path]",
            "p.yaml:7: a.sign[1]: found \"path\"; use method, target, body, challenge"
        ),
        .rule(
            "mode: enforce, sign: [method, method]",
            "p.yaml:7: a.sign[1]: found \"method\" again; use it once"
        ),
        .rule(
            "mode: enforce, sign: []",
            """
            p.yaml:7: a.sign: found an empty list; use a list of method, target, body, \
            challenge
            """
        ),
        .rule(
            "mode: enforce, headers: [X-A, x-a]",
            "p.yaml:7: a.headers[1]: found \"x-a\" again; use it once"
        ),
        .rule(
            "mode: enforce, headers: [app-attest-assertion]",
            "p.yaml:7: a.headers[0]: found app-attest-assertion; use other fields"
        ),
        .rule(
            "mode: enforce, counter: { window: 65 }",
            "p.yaml:7: a.counter.window: found \"65\"; use a number, 1…64"
        ),
        .rule(
            "mode: enforce, counter: loose",
            "p.yaml:7: a.counter: found \"loose\"; use strict | { window: 1…64 }"
        ),
        .rule(
            "mode: enforce, accept: [session]",
            """
            p.yaml:7: a.accept: found it without assertion; use [assertion] or [assertion, \
            session]
            """
        ),
        .rule(
            "mode: enforce, accept: [assertion, sessions]",
            """
            p.yaml:7: a.accept[1]: found "sessions"; use assertion, session (did you mean \
            session?)
            """
        ),
        .rule(
            "mode: enforce, accept: [assertion, session], sign: [method, target]",
            """
            p.yaml:7: a.accept: found session, while sign leaves out method, target or \
            body; use sign: [method, target, body]
            """
        ),
        .rule(
            "mode: enforce, accept: [session, assertion], sign: content",
            "p.yaml:7: a.accept: found session, while sign is content; use sign: [method"
        ),
        .rule(
            "mode: enforce, fields: { key_id: App-Attest-Session }",
            "p.yaml:7: a.fields.key_id: found \"App-Attest-Session\"; use a field name"
        ),
        .rule(
            "mode: enforce, headers: [app-attest-sequence]",
            "p.yaml:7: a.headers[0]: found app-attest-sequence; use other fields"
        ),
        .rule(
            "mode: enforce, rollout: { percent: 25 }",
            "p.yaml:7: a.rollout.percent: found \"25\" without its unit; use 25%"
        ),
        .rule(
            "mode: enforce, rollout: { percent: 101% }",
            "p.yaml:7: a.rollout.percent: found \"101%\"; use a percentage"
        ),
        .rule(
            "mode: enforce, rollout: { by: key }",
            """
            p.yaml:7: a.rollout: found no share; use percent, or all of from, to, start, \
            end
            """
        ),
        .rule(
            "mode: enforce, rollout: { from: 2026-12-31, to: 2026-12-01, start: 1%, end: 2% }",
            """
            p.yaml:7: a.rollout.to: found an end that is not after its start; use a later \
            date
            """
        ),
        .rule(
            "mode: enforce, rollout: { from: 2026-12-01, to: 2026-12-31, start: 5%, end: 2% }",
            "p.yaml:7: a.rollout.end: found 2% after 5%; use a share that is not below start"
        ),
        .rule(
            "mode: enforce, rollout: { from: 2026-02-30, to: 2026-12-31, start: 1%, end: 2% }",
            "p.yaml:7: a.rollout.from: found \"2026-02-30\"; use a date"
        ),
        .rule(
            "mode: enforce, rollout: { from: 2026-12-01, to: 2026-12-31, start: 1% }",
            "p.yaml:7: a.rollout.end: found no such key; use it too"
        ),
        .rule(
            "mode: enforce, rollout: { percent: 5%, start: 1% }",
            "p.yaml:7: a.rollout.start: found it beside percent; use either"
        ),
        .rule(
            "mode: enforce, body: { limit: 5 }",
            "p.yaml:7: a.body.limit: found \"5\"; use a size with its unit"
        ),
        .rule(
            "mode: enforce, fields: { key_id: host }",
            "p.yaml:7: a.fields.key_id: found \"host\"; use a field name"
        ),
        .rule(
            "mode: enforce, fields: { key_id: x, assertion: X }",
            "p.yaml:7: a.fields: found one name for two fields; use four different names"
        ),
        .rule(
            "mode: enforce, next_challenge: yes",
            "p.yaml:7: a.next_challenge: found \"yes\"; use true | false"
        ),
        .rule(
            "mode: enforce, preflight: allow",
            "p.yaml:7: a.preflight: found \"allow\"; use judge | forward"
        ),
        .rule(
            "mode: off, allow_encoded: [slahs]",
            """
            p.yaml:7: a.allow_encoded[0]: found "slahs"; use slash, backslash, \
            bare-backslash, invalid-utf8 (did you mean slash?)
            """
        ),
        .rule(
            "mode: enforce, challenge: { need: required, json_pointer: auth }, sign: content",
            "p.yaml:7: a.challenge.json_pointer: found \"auth\"; use a JSON pointer"
        ),
    ]

    static let routes: [Row] = [
        .more(
            "rules:\n  - { id: a, match: {}, mode: off }",
            "p.yaml:7: a.match: found nothing to match; use host, method, path or client"
        ),
        .more(
            "rules:\n  - { id: a, match: { path: \"/v1/{id}\" }, mode: off }",
            """
            p.yaml:7: a.match.path: found "/v1/{id}"; use * for a segment and ** for the \
            rest (did you mean /v1/*?)
            """
        ),
        .more(
            "rules:\n  - { id: a, match: { path: /v1/:id/x }, mode: off }",
            """
            p.yaml:7: a.match.path: found "/v1/:id/x"; use * for a segment and ** for the \
            rest (did you mean /v1/*/x?)
            """
        ),
        .more(
            "rules:\n  - { id: a, match: { method: [GET, ANY] }, mode: off }",
            """
            p.yaml:7: a.match.method[1]: found "ANY"; use no method, which stands for any, \
            or method names in upper case, such as [GET, POST]
            """
        ),
        .more(
            "rules:\n  - { id: a, match: { method: [all] }, mode: off }",
            "p.yaml:7: a.match.method[0]: found \"all\"; use no method, which stands for any"
        ),
        .more(
            "rules:\n  - { id: a, match: { method: \"*\" }, mode: off }",
            "p.yaml:7: a.match.method: found \"*\"; use no method, which stands for any"
        ),
        .more(
            "rules:\n  - { id: a, match: { path: a }, mode: off }",
            "p.yaml:7: a.match.path: found \"a\"; use a path that begins with a slash"
        ),
        .more(
            "rules:\n  - { id: a, match: { path: /a*, host: x.y }, mode: off }",
            "p.yaml:7: a.match.path: found \"/a*\"; use * only as a whole segment"
        ),
        .more(
            "rules:\n  - { id: a, match: { path: \"/a/../b\" }, mode: off }",
            "p.yaml:7: a.match.path: found \"/a/../b\"; use a path without dot segments"
        ),
        .more(
            "rules:\n  - { id: a, match: { method: [post] }, mode: off }",
            """
            p.yaml:7: a.match.method[0]: found "post"; use method names in upper case, \
            such as [GET, POST] (did you mean POST?)
            """
        ),
        .more(
            "rules:\n  - { id: a, match: { host: \"a.com:80\" }, mode: off }",
            "p.yaml:7: a.match.host: found \"a.com:80\"; use api.example.com"
        ),
        .more(
            "rules:\n  - { id: a, match: { host: *.example.com }, mode: off }",
            "p.yaml:7: found no YAML"
        ),
        .more(
            """
            rules:
              - { id: a, match: { path: /a }, mode: off }
              - { id: a, match: { path: /b }, mode: off }
            """,
            "p.yaml:8: a.id: found a, which is already at p.yaml:7; use another id"
        ),
        .more(
            """
            rules:
              - { id: a, match: { path: /** }, mode: off }
              - { id: b, match: { path: /b }, mode: off }
            """,
            """
            p.yaml:8: b.match: found only requests that meet the rule at p.yaml:7 (a) \
            before; use this rule before that one, or none
            """
        ),
        .more("rules:\n  - a", "p.yaml:7: rules[0]: found \"a\"; use a mapping with id, match"),
    ]

    /// Options that would do nothing where they stand.
    static let effects: [Row] = [
        .rule(
            "mode: enforce, sign: [method], body: { limit: 1KiB }",
            """
            p.yaml:7: a.body: found it with a sign that leaves the content out, where it \
            has no effect; use a sign with body, or no body
            """
        ),
        .rule(
            "mode: enforce, sign: [method], body: { digest: none, limit: 1KiB }",
            "p.yaml:7: a.body: found it with a sign that leaves the content out"
        ),
        .rule(
            "mode: enforce, sign: [body], body: none",
            "p.yaml:7: a.body: found none with a sign with body; use held | streamed"
        ),
        .rule(
            "mode: enforce, sign: content, body: streamed",
            "p.yaml:7: a.body: found streamed with sign: content; use held"
        ),
        .rule(
            "mode: enforce, body: declared",
            """
            p.yaml:7: a.body: found declared, which is no longer offered; use held (the \
            origin sees nothing before all content is verified) or streamed (as declared was: \
            content goes to the origin while it arrives, and the connection is reset when it is \
            not what was signed; only for origins that discard incomplete requests)
            """
        ),
        .rule(
            "mode: enforce, body: { digest: declared, limit: 1GiB }",
            "p.yaml:7: a.body.digest: found declared, which is no longer offered; use held"
        ),
        .rule(
            "mode: enforce, body: { limit: 257MiB }",
            """
            p.yaml:7: a.body.limit: found a limit of 257MiB with limits.address_held of \
            256MiB; use a limit of at most 256MiB, or a larger limits.address_held
            """
        ),
        .rule(
            "mode: enforce, body: { digest: streamed, memory: 1KiB }",
            """
            p.yaml:7: a.body.memory: found it with digest: streamed, where it has no \
            effect; use digest: held
            """
        ),
        .rule(
            "mode: enforce, body: { digest: held, limit: 1KiB, memory: 2KiB }",
            """
            p.yaml:7: a.body.memory: found 2KiB with a limit of 1KiB; use no more than \
            the limit
            """
        ),
        .rule(
            "mode: enforce, sign: [method], challenge: required",
            """
            p.yaml:7: a.challenge: found required, while sign has no challenge; use none, \
            or a sign with challenge
            """
        ),
        .rule(
            "mode: enforce, sign: [challenge], challenge: none",
            """
            p.yaml:7: a.challenge: found none, while sign has challenge; use required | \
            optional
            """
        ),
        .rule(
            "mode: enforce, sign: challenge, challenge: optional",
            """
            p.yaml:7: a.challenge: found optional, while nothing but the challenge is \
            signed; use required
            """
        ),
        .rule(
            "mode: enforce, challenge: { json_pointer: /a }",
            """
            p.yaml:7: a.challenge.json_pointer: found it without sign: content, where it \
            has no effect
            """
        ),
        .rule(
            "mode: enforce, sign: content, challenge: { need: none, json_pointer: /a }",
            "p.yaml:7: a.challenge.json_pointer: found it with need: none"
        ),
        .rule(
            "mode: enforce, sign: content, headers: [x-a]",
            "p.yaml:7: a.headers: found it with sign: content, where it has no effect"
        ),
        .more(
            """
            rules:
              - { id: a, match: { method: [GET, POST] }, mode: enforce, preflight: forward }

            """,
            """
            p.yaml:7: a.preflight: found it with methods that leave OPTIONS out, where it \
            has no effect; use OPTIONS among them, or no preflight
            """
        ),
        .rule(
            "mode: enforce, sign: [method], next_challenge: true",
            """
            p.yaml:7: a.next_challenge: found it with no challenge asked for, where it \
            has no effect
            """
        ),
    ]
}
