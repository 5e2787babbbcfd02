extension RuleSet {
    /// The most method names that all rules may name together.
    package static var methodsMax: Int { RouteIndex.methodsMax }
}
