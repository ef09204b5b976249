// Package topic implements the rules of MQTT topics and topic filters.
//
// Matches, Overlap and Subscriptions compare filters (MQTT 3.1.1, section 4.7); Check
// and CheckFilter validate them. A Template names levels of a topic, such as
// factory/{device}/vibration, and captures them. A Router maps a topic to the
// destinations whose filters match it.
package topic
