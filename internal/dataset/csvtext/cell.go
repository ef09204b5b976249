package csvtext

import (
	"strconv"
	"strings"
)

// WithPoint returns a number with a decimal point in place of a decimal comma.
func WithPoint(cell string) string {
	if strings.ContainsRune(cell, '.') {
		return cell
	}
	return strings.Replace(cell, ",", ".", 1)
}

// ParseNumber reads a number with a decimal point or a decimal comma.
func ParseNumber(cell string) (float64, error) { return ParsePoint(WithPoint(cell)) }

// ParsePoint reads a number with a decimal point. Unlike Go it takes neither hexadecimal digits nor those with _ between
// them, as of an identifier, which a daemon refuses as well.
func ParsePoint(text string) (float64, error) {
	if strings.ContainsAny(text, "_xX") {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(text, 64)
}

// numbers returns the number of cells that are numbers, and of those that are not
// missing.
func numbers(record []string) (n, cells int) {
	for _, cell := range record {
		cell = strings.TrimSpace(cell)
		if Missing(cell) {
			continue
		}
		cells++
		if _, err := ParseNumber(cell); err == nil {
			n++
		}
	}
	return n, cells
}

// Missing reports whether a cell stands for a missing value.
func Missing(cell string) bool {
	if cell == "" {
		return true
	}
	if len(cell) > len("unavailable") {
		return false
	}
	switch strings.ToLower(cell) {
	case "na", "n/a", "#n/a", "nan", "null", "none", "-", "?", "unknown", "unavailable":
		return true
	}
	return false
}
