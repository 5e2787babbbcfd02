private import CBuild

/// The version of the programs of this package, as `--version`, the metric `portcullis_build_info`,
/// packages and a fleet's status show it.
package enum ProgramVersion {
    /// `MAJOR.MINOR.PATCH` as in Semantic Versioning, then what tells a build between two versions
    /// from the release: `1.0.0+37.g2173252` is 37 commits after it, `1.0.0+dev` was built by hand.
    package static let text = "1.0.0" + String(cString: cbuild_name())
}
