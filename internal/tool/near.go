package tool

// Edits counts the letters to change, add, drop or swap between two words, as
// far as it stays below most.
func Edits(a, b string, most int) int {
	x, y := []rune(a), []rune(b)
	if d := len(x) - len(y); max(d, -d) >= most {
		return most
	}
	before, last, now := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := range x {
		now[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			now[j+1] = min(last[j+1]+1, now[j]+1, last[j]+cost)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				now[j+1] = min(now[j+1], before[j-1]+1)
			}
		}
		before, last, now = last, now, before
	}
	return min(last[len(y)], most)
}
