package hierarchy

import (
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/aiopslab/aiopslab/agent/hierarchy/seat"
)

// byMCP is where maintainers are who join as MCP clients, instead of an address.
const byMCP = "mcp"

// defaultListen is where they connect to.
const defaultListen = "127.0.0.1:0"

// seatGuests makes seats for the maintainers who join as MCP clients, and says how they do. Their keys are in no
// record.
func (g *group) seatGuests() error {
	var names []string
	for _, s := range g.services() {
		if g.guests[s] == byMCP {
			names = append(names, s)
		}
	}
	if len(names) == 0 {
		return nil
	}
	hall, err := seat.Open(g.listen)
	if err != nil {
		return fmt.Errorf("listen for MCP clients: %w", err)
	}
	g.hall, g.seats = hall, map[string]*seat.Seat{}
	for _, s := range names {
		key, told := g.tokens[s], "the one in "+tokenVariable(s)
		if key == "" {
			key = rand.Text()
			told = key
		}
		g.seats[s] = hall.Seat(seat.Config{
			Name: s, Key: key, Instructions: g.welcome(clientPrompt, s), Actions: g.guestActions(),
			Report: reportResult.Name,
		})
		g.invite(s, told)
	}
	return nil
}

// invite tells the user how an MCP client becomes the maintainer of a service.
func (g *group) invite(service, key string) {
	if g.tell == nil {
		return
	}
	url := g.seats[service].URL
	if strings.HasPrefix(key, "the one in ") {
		fmt.Fprintf(g.tell, "%s waits for its maintainer, an MCP client, at %s (bearer token: %s)\n", service, url, key)
		return
	}
	fmt.Fprintf(g.tell, "%s waits for its maintainer, an MCP client, at %s, such as\n"+
		"  claude mcp add --transport http %[1]s %[2]s --header \"Authorization: Bearer %[3]s\"\n", service, url, key)
}

// unseat ends the seat of a maintainer who is lost.
func (g *group) unseat(service string, why error) {
	if s := g.seats[service]; s != nil {
		s.Close(why)
	}
}
