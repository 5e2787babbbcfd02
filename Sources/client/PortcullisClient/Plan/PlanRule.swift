/// A rule of a plan: which requests it is for, and what it asks of them.
struct PlanRule: Sendable {
    let name: String
    /// What it asks; `nil` for nothing.
    let requirement: SigningRequirement?
    /// `*`, `*.example.com` or a host as ``RequestPlace`` has it.
    private let hosts: [String]
    /// `nil` for every method.
    private let methods: [String]?
    private let paths: [PlanPath]

    init(_ draft: PlanDraft.Rule) throws(SigningPlanError) {
        name = draft.name
        requirement = try draft.demand.requirement(of: draft.name)
        hosts = (draft.hosts ?? ["*"]).map(RequestPlace.host)
        methods = draft.methods.flatMap { $0.contains("*") ? nil : $0 }
        paths = (draft.paths ?? ["/**"]).map(PlanPath.init)
    }

    func matches(method: String, place: RequestPlace) -> Bool {
        hosts.contains { Self.takes(host: place.host, $0) }
            && (methods?.contains(method) ?? true)
            && paths.contains { $0.matches(place.segments) }
    }

    /// `*.example.com` takes every host with a label or more in front of `example.com`.
    static func takes(host: String, _ pattern: String) -> Bool {
        if pattern == "*" { return true }
        guard pattern.hasPrefix("*.") else { return pattern == host }
        return host.hasSuffix(pattern.dropFirst()) && host.utf8.count > pattern.utf8.count - 1
    }
}
