package turn

import (
	"fmt"
	"strings"

	"github.com/metier-run/metier/internal/llm"
)

// Everything in this file is read by a model or, in the case of the notice, by
// the person who asked. The golden file testdata/prompts.golden pins it.

// outOfRoundsRequest asks for the forced answer.
func outOfRoundsRequest(rounds int) string {
	return fmt.Sprintf("You have used all %d rounds of tool calls for this request. Answer now from what you have already read. "+
		"Say which part you could not check.", rounds)
}

// outOfRoundsNotice follows a forced answer that still asked for tools.
func outOfRoundsNotice(names []string) string {
	return fmt.Sprintf("(I ran out of tool calls for this request before I could use %s. Ask me to continue and I will carry on from here.)",
		strings.Join(names, ", "))
}

// tooManyCalls answers each call above the bound of a round.
func tooManyCalls(limit int) string {
	return fmt.Sprintf("Error: not run. Only the first %d calls of a message are answered. "+
		"If you still need this one, make it again on its own.", limit)
}

// interrupted answers a call that was running when the host stopped and that
// may not be run twice.
func interrupted(name string) string {
	return fmt.Sprintf("Error: the host restarted while %s was running. It may have run, in part or whole. "+
		"Check what it changed before you call it again.", name)
}

// hostFault answers a call that failed for a reason that is not the model's.
func hostFault(name string) string {
	return fmt.Sprintf("Error: %s failed inside the host; nothing is wrong with your call. "+
		"Go on without it and say what you could not check.", name)
}

// resultAsUser is a call's answer for models that drop messages of role tool.
func resultAsUser(c llm.Call, text string) string {
	return fmt.Sprintf("Result of your call to %s with %s:\n\n%s", c.Name, c.Arguments, text)
}

// elidedResult stands in place of a result that was left out to make room.
func elidedResult(c llm.Call, size int) string {
	return fmt.Sprintf("[Left out to save room: the result of %s with %s, %d bytes. Call it again if you still need it.]", c.Name, c.Arguments, size)
}

// cutResult ends a result that was longer than the model's window has room for.
func cutResult(shown, size int) string {
	return fmt.Sprintf("\n\n[Cut to fit: %d of %d bytes are shown. Ask for less at a time.]", shown, size)
}
