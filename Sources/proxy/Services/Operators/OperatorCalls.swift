/// What operators may do through their listener beside reading its pages. Where nobody is named for
/// something, it is not served.
package struct OperatorCalls {
    /// Who makes calls about devices.
    package var devices: (any DeviceCalling)?
    /// Who drains servers.
    package var origins: (any OriginDraining)?
    /// Who changes rollouts.
    package var rollouts: (any RolloutTaking)?
    /// Who hands over to another process.
    package var upgrades: (any Handing)?
    /// Who knows the last refusals.
    package var refusals: (any RefusalSource)?
    /// Who knows what was counted for reports.
    package var reports: (any ReportSource)?

    /// Who may call.
    package var gate = OperatorGate()

    /// Nothing is served.
    package init() {}

    var entries: [ServiceEntry] {
        var entries: [ServiceEntry] = []
        if let devices { entries += ServiceEntry.deviceCalls(devices) }
        if let origins { entries += ServiceEntry.draining(origins) }
        if let rollouts { entries += ServiceEntry.rollouts(rollouts) + [.audit(rollouts)] }
        if let upgrades { entries.append(.upgrading(upgrades)) }
        if let refusals { entries += ServiceEntry.why(refusals) + [.refusals(refusals)] }
        let calls: DashboardPage.Calls =
            if entries.isEmpty { .none } else { gate.asksForToken ? .token : .open }
        if let reports { entries += ServiceEntry.reports(reports) }
        return entries + ServiceEntry.dashboard(calls)
    }
}
