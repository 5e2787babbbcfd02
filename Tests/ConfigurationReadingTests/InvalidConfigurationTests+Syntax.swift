import Expectations
import Testing

/// Files that are no YAML: the line of the mistake, which is often before the one that the parser
/// names, and what helps in this case.
extension InvalidConfigurationTests {
    static let syntax: [Row] = [
        .more(
            "limits:\n\thead: 16KiB",
            "p.yaml:7: found a tab before the text of a line; use spaces"
        ),
        .more(
            "rules:\n  - id: a\n  \tmode: off",
            "p.yaml:8: found a tab before the text of a line; use spaces"
        ),
        .more(
            "rules:\n  - id: a\n    mode:enforce\n    origin: shop",
            "p.yaml:8: found mode:enforce, without a space after the colon; use mode: enforce"
        ),
        .more(
            "limits:\n  # a remark\n  head:16KiB\n\n  target: 8KiB",
            "p.yaml:8: found head:16KiB, without a space after the colon; use head: 16KiB"
        ),
        .more(
            "rules:\n  - id:a\n    mode: off",
            "p.yaml:7: found id:a, without a space after the colon; use id: a"
        ),
        .more(
            "limits:\n  head: 16KiB\n    target: 8KiB",
            """
            p.yaml:8: found no YAML (mapping values are not allowed in this context); \
            use the same indentation for all keys of one mapping
            """
        ),
        .more(
            "rules: a: b",
            """
            p.yaml:6: found no YAML (mapping values are not allowed in this context); \
            use quotes around a text that has a colon and a space
            """
        ),
        .more(
            "rules:\n  - id: a\n   mode: off",
            """
            p.yaml:8: found no YAML (did not find expected '-' indicator); use a hyphen before \
            each entry of a list, and the same indentation for all keys of one mapping
            """
        ),
        .more(
            "limits:\n    head: 16KiB\n   target: 8KiB",
            """
            p.yaml:8: found no YAML (did not find expected key); use the same indentation for \
            all keys of one mapping; a [, { or quote for each ], } or quote that ends a text
            """
        ),
        .more(
            "rules: [\nlimits: { head: 16KiB }\n",
            """
            p.yaml:6: found a [ or { without its end, or a comma that is missing, noticed in \
            line 8; use a ] for each [, a } for each {
            """
        ),
        .more(
            "rules:\n  - { id: a match: { path: /a } }",
            """
            p.yaml:7: found a [ or { without its end, or a comma that is missing; \
            use a ] for each [, a } for each {
            """
        ),
        .more(
            "spill_folder: \"/tmp\nprobes: { live: /livez }\n",
            "p.yaml:6: found a quote without its end, noticed in line 8; use two quotes"
        ),
        .more(
            "limits\nprobes: { live: /livez }",
            "p.yaml:6: found no YAML (could not find expected ':'); use a key, a colon, a space"
        ),
        .more(
            "spill_folder: @tmp",
            """
            p.yaml:6: found no YAML (found character that cannot start any token); use YAML 1.2; \
            quotes around texts that begin with one of *&!%@`[{#|>
            """
        ),
    ]
}
