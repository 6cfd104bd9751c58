// A program that makes the compiler work: containers of containers, and algorithms over them.
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

template <int N> struct Tree {
    std::map<std::string, Tree<N - 1>> children;
    int count() const {
        int sum = 1;
        for (auto const& [name, child] : children) sum += child.count();
        return sum;
    }
};
template <> struct Tree<0> {
    int count() const { return 1; }
};

int main() {
    Tree<8> tree;
    tree.children["a"].children["b"].children["c"];
    std::unordered_map<std::string, std::vector<int>> index;
    std::istringstream text("the quick brown fox jumps over the lazy dog");
    int at = 0;
    for (std::string word; text >> word;) index[word].push_back(at++);
    std::vector<std::pair<std::string, int>> ranked;
    for (auto const& [name, places] : index) ranked.emplace_back(name, places.size());
    std::sort(ranked.begin(), ranked.end());
    std::ostringstream out;
    for (auto const& [name, places] : ranked) out << name << places << ' ';
    std::cout << tree.count() << out.str() << std::endl;
}
