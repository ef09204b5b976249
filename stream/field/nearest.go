package field

// Nearest returns the candidate with the least edit distance to word, or "" if
// none is close.
func Nearest(word string, candidates []string) string {
	best, at := "", len(word)/3+2
	for _, c := range candidates {
		if d := editDistance(word, c); d < at {
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
