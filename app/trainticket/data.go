package trainticket

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/aiopslab/aiopslab/app/service"
)

// station is a place where trains stop.
type station struct {
	ID       string `bson:"_id" json:"id"`
	Name     string `bson:"name" json:"name"`
	StayTime int    `bson:"stayTime" json:"stayTime"` // minutes
}

// trainType is a kind of train, with its seats.
type trainType struct {
	ID           string `bson:"_id" json:"id"`
	EconomyClass int    `bson:"economyClass" json:"economyClass"`
	ConfortClass int    `bson:"confortClass" json:"confortClass"` // as the original spells it
	AverageSpeed int    `bson:"averageSpeed" json:"averageSpeed"` // km/h
}

// route is where a train goes, with the kilometres from its start.
type route struct {
	ID        string   `bson:"_id" json:"id"`
	Stations  []string `bson:"stations" json:"stations"`
	Distances []int    `bson:"distances" json:"distances"`
}

// priceConfig is what a kilometre costs on a route.
type priceConfig struct {
	ID                  string  `bson:"_id" json:"id"`
	RouteID             string  `bson:"routeId" json:"routeId"`
	TrainType           string  `bson:"trainType" json:"trainType"`
	BasicPriceRate      float64 `bson:"basicPriceRate" json:"basicPriceRate"`
	FirstClassPriceRate float64 `bson:"firstClassPriceRate" json:"firstClassPriceRate"`
}

// trip is a train that goes every day.
type trip struct {
	ID           string `bson:"_id" json:"tripId"`
	TrainType    string `bson:"trainTypeId" json:"trainTypeId"`
	RouteID      string `bson:"routeId" json:"routeId"`
	StartingTime string `bson:"startingTime" json:"startingTime"` // of the day
}

// person is a user of the system.
type person struct {
	ID          string `bson:"_id" json:"userId"`
	Name        string `bson:"userName" json:"userName"`
	Email       string `bson:"email" json:"email"`
	DocumentNum string `bson:"documentNum" json:"documentNum"`
}

// login is what somebody logs in with.
type login struct {
	Name string `bson:"_id"`
	User string `bson:"userId"`
	Sum  string `bson:"password"`
}

// balance is the money of somebody, in cents.
type balance struct {
	User  string `bson:"_id"`
	Cents int64  `bson:"cents"`
}

const (
	// passengers are users who are there from the beginning, besides the original's own.
	passengers = 200
	// richCents is what they have on their accounts.
	richCents = 50_000_000
)

// userID is what a user is known by: a number that looks drawn and comes of the name.
func userID(name string) string {
	if name == "fdse_microservice" {
		return "4d2a46c7-71cb-4cf1-b5bb-b68406d9da6f"
	}
	return uuidOf("user " + name)
}

// uuidOf makes a UUID of version 4 of a text.
func uuidOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	sum[6], sum[8] = sum[6]&0x0f|0x40, sum[8]&0x3f|0x80
	h := hex.EncodeToString(sum[:16])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// passwordSum is what is kept of a password.
func passwordSum(user, password string) string {
	sum := sha256.Sum256([]byte(user + ":" + password))
	return hex.EncodeToString(sum[:])
}

// people are the users that are there from the beginning, with their passwords.
func people() (list []person, passwords []string) {
	add := func(name, password, email string) {
		list = append(list, person{userID(name), name, email, fmt.Sprintf("2135488099312%05d", len(list))})
		passwords = append(passwords, password)
	}
	add("fdse_microservice", "111111", "fdse_microservice@163.com")
	for i := range passengers {
		name := passengerName(i)
		add(name, strings.Repeat(fmt.Sprint(i), 6), name+"@example.com")
	}
	return list, passwords
}

func passengerName(i int) string { return fmt.Sprintf("passenger_%d", i) }

func userSeed() map[string][]any {
	list, _ := people()
	return map[string][]any{"user": service.Documents(list)}
}

func loginSeed() map[string][]any {
	list, passwords := people()
	var docs []login
	for i, p := range list {
		docs = append(docs, login{p.Name, p.ID, passwordSum(p.ID, passwords[i])})
	}
	return map[string][]any{"auth_user": service.Documents(docs)}
}

func balanceSeed() map[string][]any {
	list, _ := people()
	var docs []balance
	for _, p := range list {
		docs = append(docs, balance{p.ID, richCents})
	}
	return map[string][]any{"balance": service.Documents(docs)}
}

var stations = []station{
	{"shanghai", "Shang Hai", 10},
	{"shanghaihongqiao", "Shang Hai Hong Qiao", 10},
	{"taiyuan", "Tai Yuan", 5},
	{"beijing", "Bei Jing", 10},
	{"nanjing", "Nan Jing", 8},
	{"shijiazhuang", "Shi Jia Zhuang", 8},
	{"xuzhou", "Xu Zhou", 7},
	{"jinan", "Ji Nan", 5},
	{"hangzhou", "Hang Zhou", 9},
	{"jiaxingnan", "Jia Xing Nan", 2},
	{"zhenjiang", "Zhen Jiang", 2},
	{"wuxi", "Wu Xi", 3},
	{"suzhou", "Su Zhou", 3},
}

// Seats of a train, of each class. The original has as many as there are numbers.
const economySeats, confortSeats = 600, 200

var trains = []trainType{
	{"GaoTieOne", economySeats, confortSeats, 250},
	{"GaoTieTwo", economySeats, confortSeats, 200},
	{"DongCheOne", economySeats, confortSeats, 180},
	{"ZhiDa", economySeats, confortSeats, 120},
	{"TeKuai", economySeats, confortSeats, 120},
	{"KuaiSu", economySeats, confortSeats, 90},
}

var routes = []route{
	{
		"92708982-77af-4318-be25-57ccb0ff69ad",
		[]string{"nanjing", "zhenjiang", "wuxi", "suzhou", "shanghai"},
		[]int{0, 100, 150, 200, 250},
	},
	{"aefcef3f-3f42-46e8-afd7-6cb2a928bd3d", []string{"nanjing", "shanghai"}, []int{0, 250}},
	{"a3f256c1-0e43-4f7d-9c21-121bf258101f", []string{"nanjing", "suzhou", "shanghai"}, []int{0, 200, 250}},
	{"084837bb-53c8-4438-87c8-0321a4d09917", []string{"suzhou", "shanghai"}, []int{0, 50}},
	{"f3d4d4ef-693b-4456-8eed-59c0d717dd08", []string{"shanghai", "suzhou"}, []int{0, 50}},
	{
		"0b23bd3e-876a-4af3-b920-c50a90c90b04",
		[]string{"shanghai", "nanjing", "shijiazhuang", "taiyuan"},
		[]int{0, 350, 1000, 1300},
	},
	{
		"9fc9c261-3263-4bfa-82f8-bb44e06b2f52",
		[]string{"nanjing", "xuzhou", "jinan", "beijing"},
		[]int{0, 500, 700, 1200},
	},
	{
		"d693a2c5-ef87-4a3c-bef8-600b43f62c68",
		[]string{"taiyuan", "shijiazhuang", "nanjing", "shanghai"},
		[]int{0, 300, 950, 1300},
	},
	{"20eb7122-3a11-423f-b10a-be0dc5bce7db", []string{"shanghai", "taiyuan"}, []int{0, 1300}},
	{
		"1367db1f-461e-4ab7-87ad-2bcc05fd9cb7",
		[]string{"shanghaihongqiao", "jiaxingnan", "hangzhou"},
		[]int{0, 150, 300},
	},
}

var trips = []trip{
	{"G1234", "GaoTieOne", routes[0].ID, "09:00"},
	{"G1235", "GaoTieOne", routes[1].ID, "12:00"},
	{"G1236", "GaoTieOne", routes[2].ID, "14:00"},
	{"G1237", "GaoTieTwo", routes[3].ID, "08:00"},
	{"D1345", "DongCheOne", routes[4].ID, "07:00"},
}

var prices = []priceConfig{
	{"6d20b8cb-039c-474c-ae25-b6177ea41152", routes[0].ID, "GaoTieOne", 0.38, 1},
	{"c5679b7e-4a54-4f52-9939-1ae86ba16fa7", routes[1].ID, "GaoTieOne", 0.5, 1},
	{"719287d6-d3e7-4b54-9a92-71d039748b22", routes[2].ID, "GaoTieOne", 0.7, 1},
	{"7de18cf8-bb17-4bb2-aeb4-85d8176d3a93", routes[3].ID, "GaoTieTwo", 0.6, 1},
	{"d5c4523a-827c-468c-95be-e9024a40572e", routes[4].ID, "DongCheOne", 0.45, 1},
	{"b90a6ad7-ffad-4624-9655-48e9e185fa6c", routes[5].ID, "ZhiDa", 0.35, 1},
	{"8fb01829-393f-4af4-9e96-f72866f94d14", routes[6].ID, "ZhiDa", 0.35, 1},
	{"8b059dc5-01a2-4f8f-8f94-6c886b38bb34", routes[7].ID, "ZhiDa", 0.32, 1},
	{"dd0e572e-7443-420c-8280-7d8215636069", routes[8].ID, "TeKuai", 0.3, 1},
	{"0eb474c9-f8be-4119-8681-eb538a404a6a", routes[9].ID, "KuaiSu", 0.2, 1},
}

// distance is how far it is between two stations of a route, if a train goes that way.
func (r route) distance(from, to string) (int, bool) {
	start := -1
	for i, s := range r.Stations {
		switch {
		case s == from:
			start = r.Distances[i]
		case s == to && start >= 0:
			return r.Distances[i] - start, true
		}
	}
	return 0, false
}
