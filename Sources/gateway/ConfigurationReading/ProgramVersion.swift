/// The version of this project's programs.
package enum ProgramVersion {
    package static let text = "0.1.0"
}
