/// What an app or a server links must be on the oldest systems that Package.swift names. No build
/// here shows that: Linux has no such limit.
struct PlatformCheck {
    /// The targets that an app links: those in Sources/client, and all that they use. And those of
    /// AppAttest, which a server on macOS links.
    let targets: Set<String>
    /// The oldest iOS that Package.swift names. The other systems that it names are as old.
    let oldest: Int

    /// Names of the standard library, and the iOS that has them first. An availability attribute
    /// stands beside each in the toolchain's Swift.swiftinterface.
    private static let since: [String: Int] = [
        "Atomic": 18, "AtomicLazyReference": 18, "InlineArray": 26, "Int128": 18, "Mutex": 18,
        "Observable": 17, "Observation": 17, "Observations": 26, "RangeSet": 18,
        "Synchronization": 18, "TaskExecutor": 18, "UInt128": 18, "UTF8Span": 26,
        "utf8Span": 26, "withDiscardingTaskGroup": 17, "withThrowingDiscardingTaskGroup": 17,
    ]

    init(_ project: Project) {
        self.init(
            manifest: project.manifest,
            package: project.manifestSource,
            linked: Set(
                project.sources.filter { $0.path.hasPrefix("Sources/client/") }.map(\.target)
                    + ["AppAttest"]
            )
        )
    }

    init(manifest: Manifest, package: SwiftSource, linked: Set<String>) {
        targets = linked.reduce(into: []) { $0.formUnion(manifest.closure(of: $1)) }
        let places = package.tokens.indices.filter { package.reads($0, ".", "iOS", "(", ".") }
        // `v16`
        oldest = places.first.flatMap { Int(package.token($0, 4).text.dropFirst()) } ?? 0
    }

    func findings(in source: SwiftSource) -> [Finding] {
        guard !source.isTest, targets.contains(source.target) else { return [] }
        return source.tokens.indices.compactMap { index in
            let token = source.token(index)
            guard token.kind == .word else { return nil }
            if let since = Self.since[token.text], since > oldest {
                return source.finding(
                    token.line,
                    "Apple's systems have \(token.text) since \(since), and this runs on older"
                )
            }
            if oldest < 18, source.reads(index, "String", "(", "validating", ":") {
                return source.finding(
                    token.line,
                    "Apple's systems have String(validating:as:) since 18: take String(utf8:)"
                )
            }
            guard oldest < 26, source.reads(index - 1, ".", "span"), !isOld(index - 2, in: source)
            else { return nil }
            return source.finding(
                token.line,
                "Apple's systems have Array.span since 26: take a ContiguousArray"
            )
        }
    }

    /// Whether what ends at `index` has had a span for long: a contiguous array.
    private func isOld(_ index: Int, in source: SwiftSource) -> Bool {
        let name = source.token(index).text
        if name == ")" {
            let start = source.tokens.indices.last { place in
                place < index && source.reads(place, "(") && source.closing(place) == index
            }
            return start.map { source.reads($0 - 1, "ContiguousArray") } ?? false
        }
        return source.tokens.indices.contains { place in
            source.reads(place, name, ":", "ContiguousArray")
                || source.reads(place, name, "=", "ContiguousArray")
        }
    }
}
