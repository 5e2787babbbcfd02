import HTTPWire
import Rules

// A rule's `match`.
extension MappingReader {
    func match(_ key: String) -> RouteMatch? {
        guard let inner = inner(key, RouteMatch.keys) else { return nil }
        guard inner.has("host") || inner.has("method") || inner.has("path") else {
            log.error(inner, found: "nothing to match", use: "host, method or path")
            return nil
        }
        let host = inner.value(
            "host",
            use: "api.example.com, \"*.example.com\" or \"*\", without a port"
        ) {
            HostPattern(text: $0)
        }
        let methods = inner.methods("method")
        let pattern = inner.pattern("path")
        // An unreadable part must not make the rule match more than it says.
        if inner.has("host"), host == nil { return nil }
        if inner.has("method"), methods == nil { return nil }
        if inner.has("path"), pattern == nil { return nil }
        return RouteMatch(host: host?.value ?? .any, methods: methods, path: pattern ?? .all)
    }

    /// Method names; a single one may stand without brackets.
    private func methods(_ key: String) -> [String]? {
        let use = "method names in upper case, such as [GET, POST]"
        guard !namesAllMethods(key, use: use) else { return nil }
        let known = RegisteredMethod.names.filter { !["CONNECT", "TRACE", "PRI"].contains($0) }
        func method(_ text: String) -> String? {
            guard TextForm.fieldName(text) != nil, !["CONNECT", "TRACE"].contains(text) else {
                return nil  // The gateway answers these itself.
            }
            return text == text.uppercased() && text.utf8.count <= 32 ? text : nil
        }
        if case .text = node(key)?.content {
            return value(key, use: use, words: known, method).map { [$0.value] }
        }
        let before = log.problems.count
        let methods = list(key, of: use, words: known, method)
        return log.problems.count == before ? methods?.map(\.value) : nil
    }

    /// Whether the list has a word that elsewhere means all methods, which is a problem: here it
    /// would be one method, which no client sends.
    private func namesAllMethods(_ key: String, use: String) -> Bool {
        guard let node = node(key) else { return false }
        let nodes: [(SourceNode, String)]
        switch node.content {
        case .list(let list): nodes = list.enumerated().map { ($1, "\(path(key))[\($0)]") }
        case .text, .nothing, .mapping: nodes = [(node, path(key))]
        }
        for (node, keyPath) in nodes {
            guard case .text(let text) = node.content,
                ["*", "ANY", "ALL"].contains(text.uppercased())
            else { continue }
            let use = "no method, which stands for any, or \(use)"
            log.error(node.place, keyPath, found: node.found, use: use)
            return true
        }
        return false
    }

    private func pattern(_ key: String) -> PathPattern? {
        guard let node = node(key) else { return nil }
        let example = "/v1/orders, /v1/users/* or /v1/files/**"
        log.record?.text(path(key), ReadingRecord.Text(use: example))
        guard case .text(let text) = node.content else {
            log.error(node.place, path(key), found: node.found, use: example)
            return nil
        }
        do throws(PathPattern.Fault) {
            return try PathPattern(text)
        } catch {
            let use =
                switch error {
                case .noLeadingSlash: "a path that begins with a slash: \(example)"
                case .placeholder(let meant):
                    "* for a segment and ** for the rest (did you mean \(meant)?)"
                case .partialWildcard: "* only as a whole segment: \(example)"
                case .restBeforeEnd: "** only at the end: \(example)"
                case .character: "a path without query, fragment, space, %2A and %3B, in US-ASCII"
                case .emptySegment: "a path without empty segments: no // and no /;"
                case .construct: "a path without dot segments, backslashes, %2F, %5C and %00"
                case .tooManySegments: "at most \(PathPattern.segmentsMax) segments"
                }
            log.error(node.place, path(key), found: node.found, use: use)
            return nil
        }
    }
}

extension RouteMatch {
    fileprivate static let keys = Keys<Self> {
        Key("host").means("A host, all hosts below a domain, or any.")
        Key("method").means("Methods. GET includes HEAD.")
        Key("path").means("A path: * stands for a segment, ** for the rest.")
    }
}
