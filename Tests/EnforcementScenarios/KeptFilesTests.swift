import Expectations
import Testing

@testable import Gateway

/// Where a gateway keeps what its next start needs.
@Suite struct KeptFilesTests {
    @Test func `the first folder of the variable is taken where it is an absolute one`() {
        func folder(_ value: String) -> String? { KeptFiles.folder(["STATE_DIRECTORY": value]) }
        expectEqual(KeptFiles.folder([:]), nil)
        expectEqual(folder("/var/lib/portcullis"), "/var/lib/portcullis")
        expectEqual(folder("/var/lib/a:/var/lib/b"), "/var/lib/a")
        expectEqual(folder(""), nil)
        expectEqual(folder("state"), nil)
    }

    @Test func `the files have the name of the configuration's file in that folder`() {
        let file = "/etc/portcullis/portcullis.yaml"
        expectEqual(KeptFiles.path(file, in: nil), file)
        expectEqual(KeptFiles.path(file, in: "/var/lib/a"), "/var/lib/a/portcullis.yaml")
        expectEqual(KeptFiles.path("one.yaml", in: "/var/lib/a"), "/var/lib/a/one.yaml")
    }
}
