package registry

import "fmt"

// sentence says what an installer, and whoever reads what it prints, did not get.
func (s *Session) sentence(t Trouble) string {
	switch t.Reason {
	case NotAllowed:
		return fmt.Sprintf("%s is not among the hosts that installs may use; the operator can add it with %s", t.Host, s.flag)
	case Missing:
		return fmt.Sprintf("%s has no %s", t.Host, t.What)
	case Denied:
		return fmt.Sprintf("%s refuses access to %s", t.Host, t.What)
	case Failing:
		return fmt.Sprintf("%s answered with an error for %s", t.Host, t.What)
	case Unreachable:
		return fmt.Sprintf("%s did not answer for %s", t.Host, t.What)
	case Untrusted:
		return fmt.Sprintf("the certificate of %s is not trusted", t.Host)
	case Late:
		return fmt.Sprintf("%s did not answer in time for %s", t.Host, t.What)
	case TooLarge:
		return fmt.Sprintf("what %s has as %s is larger than an install may fetch", t.Host, t.What)
	case Mismatch:
		return fmt.Sprintf("%s from %s is not the file that the index describes", t.What, t.Host)
	case Cut:
		return fmt.Sprintf("%s from %s ended early", t.What, t.Host)
	}
	return fmt.Sprintf("%s gave no answer that a registry gives for %s", t.Host, t.What)
}
