// Package harness drives edge from outside for the tests below test/: it builds
// the program, runs its commands, starts and kills daemons, and compares their
// state with that of a learner to which nothing happened.
//
//   - [Main] is the TestMain of a package that uses the harness.
//   - [Run] runs one command; [Start] starts `edge run` as a [Daemon].
//   - [WaveformConfig] and [WaveformFile] write the configuration and the data of
//     most tests; [Replay] publishes the file.
//   - [Minimal] is the text of the smallest configuration; [Parsed] reads such a text.
//   - [DoctorFindings] runs edge doctor as patiently as a loaded machine needs.
//   - [Objects] returns what a command prints as JSON; [RemovesLeftovers] tests that a command
//     removes the files of killed ones; [Log] is a log that a test reads.
//   - [Tap] is a proxy between daemon and broker that records acknowledgements.
//   - [Truth] is the undisturbed learner, whose digest a daemon has to reach.
//
// The brokers themselves are started by package brokertest: the embedded one,
// mosquitto, NATS and RabbitMQ.
//
// The program is built once for each package of tests, with the race detector if
// the tests have it. EDGE_BINARY names a program to use instead, and EDGE_EMULATOR
// the command that runs it, for a program of another architecture.
package harness
