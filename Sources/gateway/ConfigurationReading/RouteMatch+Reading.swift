import HTTPWire
import Rules

// A rule's `match`.
extension MappingReader {
    func match(_ key: String) -> RouteMatch? {
        guard let inner = inner(key, RouteMatch.keys) else { return nil }
        guard RouteMatch.keys.names.contains(where: inner.has) else {
            log.error(inner, found: "nothing to match", use: "host, method, path or client")
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
        let networks = inner.networks("client")
        let excluded = inner.networks("not_client")
        // An unreadable part must not make the rule match more than it says.
        if inner.has("host"), host == nil { return nil }
        if inner.has("method"), methods == nil { return nil }
        if inner.has("path"), pattern == nil { return nil }
        if inner.has("client"), networks == nil { return nil }
        if inner.has("not_client"), excluded == nil { return nil }
        let namesClients = networks != nil || excluded != nil
        return RouteMatch(
            host: host?.value ?? .any,
            methods: methods,
            path: pattern ?? .all,
            clients: namesClients ? ClientPattern(networks ?? [], without: excluded ?? []) : nil
        )
    }

    /// Networks; a single one may stand without brackets.
    private func networks(_ key: String) -> [IPNetwork]? {
        let use = "networks such as 10.0.0.0/8 or \"2001:db8::/32\""
        let before = log.problems.count
        for (node, keyPath) in elements(key) {
            guard case .text(let text) = node.content, IPNetwork(text) == nil,
                let meant = IPNetwork.meant(by: text)
            else { continue }
            let reason = text.contains("::ffff:") ? "an IPv4 network" : "bits after the prefix"
            log.error(
                node.place,
                keyPath,
                found: "\(node.found), which has \(reason)",
                use: meant.text
            )
        }
        guard log.problems.count == before else { return nil }
        if case .text = node(key)?.content {
            return value(key, use: use) { IPNetwork($0) }.map { [$0.value] }
        }
        let networks = list(key, of: use) { IPNetwork($0) }
        return log.problems.count == before ? networks?.map(\.value) : nil
    }

    /// The elements of a list, or the value alone.
    private func elements(_ key: String) -> [(node: SourceNode, keyPath: String)] {
        guard let node = node(key) else { return [] }
        switch node.content {
        case .list(let list): return list.enumerated().map { ($1, "\(path(key))[\($0)]") }
        case .text, .nothing, .mapping: return [(node, path(key))]
        }
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
        for (node, keyPath) in elements(key) {
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
        Key("client").means("Networks: the clients whose requests are meant.")
        Key("not_client").means("Networks: clients whose requests are not meant.")
    }
}
