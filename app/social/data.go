package social

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// The data the application starts with: as many users and friendships as the Facebook network of
// Reed College, which DeathStarBench loads, has.
const (
	userCount  = 962
	edgeCount  = 18812
	graphSeed  = 98
	attachment = 20 // how many friends a new user makes, about edgeCount/userCount
)

// accounts are username_0 and so on, with password_0 and so on.
func accounts() []account {
	docs := make([]account, userCount)
	for i := range docs {
		a := account{
			UserID: int64(i), Username: fmt.Sprintf("username_%d", i),
			FirstName: fmt.Sprintf("first_name_%d", i), LastName: fmt.Sprintf("last_name_%d", i),
			Salt: fmt.Sprintf("salt_%d", i),
		}
		a.Password = passwordSum(fmt.Sprintf("password_%d", i), a.Salt)
		docs[i] = a
	}
	return docs
}

// graph makes friendships, in which both follow each other, by preferential attachment: newcomers
// befriend the popular, as people do.
func graph() []vertex {
	r := rand.New(rand.NewPCG(graphSeed, graphSeed))
	friends := make([]map[int64]bool, userCount)
	for i := range friends {
		friends[i] = map[int64]bool{}
	}
	var ends []int64 // every user as often as it has friends
	edges := 0
	befriend := func(a, b int64) {
		if a == b || friends[a][b] || edges == edgeCount {
			return
		}
		friends[a][b], friends[b][a] = true, true
		ends = append(ends, a, b)
		edges++
	}
	for i := int64(1); i < userCount; i++ {
		for want := min(attachment, int(i)); want > 0; want-- {
			other := r.Int64N(i)
			if len(ends) > 0 && r.IntN(4) > 0 {
				other = ends[r.IntN(len(ends))]
			}
			befriend(i, other)
		}
	}
	for edges < edgeCount {
		befriend(ends[r.IntN(len(ends))], r.Int64N(userCount))
	}
	docs := make([]vertex, userCount)
	for i := range docs {
		ids := make([]int64, 0, len(friends[i]))
		for id := range friends[i] {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		docs[i] = vertex{int64(i), ids, ids}
	}
	return docs
}
