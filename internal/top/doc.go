// Package top is `edge top`: it shows a node at a terminal from its messages over
// MQTT, and sends labels and requests.
//
//   - Viewer has the flags and runs the command (top.go).
//   - nodeState collects the messages of a node (receive.go) and returns snapshots,
//     the views that --json prints (state.go).
//   - layout writes a view as lines of text of a given size, with the styles and
//     tables of lipgloss (layout.go, text.go).
//   - program is the interactive display, a bubbletea model (program.go).
//   - client is a nodeState with its connection (client.go).
package top
