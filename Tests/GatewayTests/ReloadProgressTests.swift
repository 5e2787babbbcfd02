import Expectations
import Services
import Testing

@testable import Gateway

/// Transcripts of reloads.
@Suite struct ReloadProgressTests {
    @Test func `a reload that is accepted makes the next generation`() {
        var progress = ReloadProgress(startedAt: 10)
        expectEqual(progress.requested(), true)
        #expect(progress.isRunning)
        expectEqual(progress.ended(), false)
        progress.accepted(at: 20)
        #expect(!progress.isRunning)
        expectEqual(progress.generation, 2)
        expectEqual(progress.facts.lastReloadAtSeconds, 20)
    }

    @Test func `reloads that are requested meanwhile are one, after the running one`() {
        var progress = ReloadProgress(startedAt: 10)
        expectEqual(progress.requested(), true)
        expectEqual(progress.requested(), false)
        expectEqual(progress.requested(), false)
        expectEqual(progress.ended(), true)
        #expect(!progress.isRunning)
        expectEqual(progress.requested(), true)
        expectEqual(progress.ended(), false)
    }

    @Test func `a refused reload keeps the generation, and says why until one is accepted`() {
        var progress = ReloadProgress(startedAt: 10)
        _ = progress.requested()
        _ = progress.ended()
        progress.refused("no such file", at: 20)
        expectEqual(progress.generation, 1)
        expectEqual(progress.facts.lastReloadError, "no such file")
        expectEqual(progress.facts.refusedReloads, 1)
        progress.accepted(at: 30)
        expectEqual(progress.facts.lastReloadError, nil)
        expectEqual(progress.facts.refusedReloads, 1)
    }
}
