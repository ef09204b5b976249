package field

import "strings"

// Nearest returns the candidate with the least edit distance to word, or "" if
// none is close. Case does not count, and one with another first letter has to be closer: it is
// seldom mistyped.
func Nearest(word string, candidates []string) string {
	best, at := "", len(word)/3+2
	small := strings.ToLower(word)
	for _, c := range candidates {
		other := strings.ToLower(c)
		if d := editDistance(small, other); d < at && (d <= max(1, len(word)/3) || strings.HasPrefix(other, small[:min(1, len(small))])) {
			best, at = c, d
		}
	}
	return best
}

// editDistance returns the Levenshtein distance of a and b: the least number of
// letters to insert, delete or replace.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
