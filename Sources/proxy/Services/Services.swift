// The requests that the gateway answers itself, without an origin.
//
//   LocalOutcome    why the gateway answers itself: refused, notEnrolled, malformed, failed, fault,
//                   done
//   LocalRow        the table: one row for each outcome, with its status and all that follows
//   LocalResponse   the message that an outcome becomes; App-Attest-Error says that it is ours
//   ServiceTable    which paths the gateway answers itself, and by which service
//   Service         answers a request, at once or later
//   OperatorGate    who may ask for what on the operators' listener
//   DashboardPage   what that listener shows in a browser; its files are in Page
//   ReportCounts    what an event loop has counted for the report; ReportLedger has the sums of all
//                   event loops, and Report is what an operator reads of them
//   RefusalMemory   the refusals that were last, in bounded memory, for `portcullis why`
//
// The public listeners have ChallengeService and KeyService, under the path that the configuration
// names, and ProbeService at the paths of its probes. The operators' listener has OperatorService:
// metrics, status and probes. Every page for operators is made from one AdminSnapshot, so that
// pages can't disagree.
//
// No call site chooses a status: it names an outcome, and the table has the rest. No code decides
// by a status in an answer.
//
// Pure: no socket, no clock, no lock. A service that has to wait says so (``ServiceAnswer``), and
// its caller waits.
