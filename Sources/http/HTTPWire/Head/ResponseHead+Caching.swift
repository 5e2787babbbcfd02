extension ResponseHead {
    /// Whether a cache that clients share may store the response and answer others with it
    /// (RFC 9111 §3, §4.2).
    ///
    /// What is for one client does not belong into such a response. In doubt the answer is yes:
    ///
    /// - A 304 does, whatever it says: a cache updates the response that it keeps with its fields
    ///   (§4.3.4).
    /// - Cache-Control says it, unless it has `no-store` or `private` for the whole response and
    ///   neither `public` nor `s-maxage`. What can't be read says it too, and so does `no-cache`: a
    ///   cache may keep the response, and asks before it answers another client with it (§5.2.2.4).
    /// - A field for certain caches (RFC 9213) says it in the same way; such caches read nothing
    ///   else.
    /// - Without Cache-Control: Expires, unless it has expired by its form (`0`, `-1`); else
    ///   Last-Modified, from which caches guess a lifetime (§4.2.2). They guess for a request that
    ///   asks for a representation, and not for POST and the like (RFC 9110 §9.3.3).
    ///
    /// A response that says nothing of all this may not be shared: nothing gives it a lifetime. A
    /// cache that gives one to every response is a matter of its configuration.
    ///
    /// - method: of the request that it answers.
    package func mayBeShared(_ octets: Span<UInt8>, answering method: Method) -> Bool {
        if status == 304 { return true }
        let said = fields.kinds.intersection(.caching)
        guard !said.isEmpty else { return false }
        if losesCachingField { return true }
        if said.contains(.targetedCacheControl),
            CacheDirectives(fields, octets, of: .targetedCacheControl).letShare == true
        {
            return true
        }
        if said.contains(.cacheControl),
            let letShare = CacheDirectives(fields, octets, of: .cacheControl).letShare
        {
            return letShare
        }
        if said.contains(.expires) {
            guard let field = fields.only(.expires) else { return true }
            // RFC 9111 §5.3: an invalid date is in the past.
            return !OctetScan.equal(octets, field.value, "0")
                && !OctetScan.equal(octets, field.value, "-1")
        }
        guard said.contains(.lastModified) else { return false }
        switch method {
        case .get, .head, .other: return true
        case .post, .put, .delete, .options, .patch, .connect, .trace: return false
        }
    }

    /// Whether Connection names a field that was meant for caches: it ends here, and caches behind
    /// the gateway go by what is left.
    private var losesCachingField: Bool {
        guard fields.connection.nominations > 0 else { return false }
        return fields.fields.contains { $0.isNominated && FieldKindSet.caching.contains($0.kind) }
    }
}

/// What all lines of a kind say to shared caches (RFC 9111 §5.2.2).
private struct CacheDirectives {
    private var isEmpty = true
    private var isMalformed = false
    private var hasNoStore = false
    /// RFC 9111 §5.2.2.3: caches that understand the response disregard `no-store` beside it.
    private var hasMustUnderstand = false
    /// `private`. With names of fields, it is about these fields alone.
    private var keepsAll = false
    /// `public` or `s-maxage`.
    private var invites = false

    /// Whether they let shared caches answer others with the response; `nil` when they say nothing.
    var letShare: Bool? {
        if isMalformed || invites { return true }
        if isEmpty { return nil }
        return !keepsAll && !(hasNoStore && !hasMustUnderstand)
    }

    init(_ section: borrowing FieldSection, _ octets: Span<UInt8>, of kind: FieldKind) {
        for index in section.fields.indices where section.fields[index].kind == kind {
            var list = ListElements(section.fields[index].value)
            while let element = list.next(octets) { note(element, octets) }
            if list.isMalformed { isMalformed = true }
        }
    }

    private mutating func note(_ directive: ListElements.Element, _ octets: Span<UInt8>) {
        isEmpty = false
        func isNamed(_ name: StaticString) -> Bool {
            OctetScan.equal(octets, directive.name, name)
        }
        if isNamed("no-store") {
            hasNoStore = true
        } else if isNamed("private") {
            if !directive.hasValue { keepsAll = true }
        } else if isNamed("must-understand") {
            hasMustUnderstand = true
        } else if isNamed("public") || isNamed("s-maxage") {
            invites = true
        }
    }
}
