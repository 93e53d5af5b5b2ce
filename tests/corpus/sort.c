/* What programs ask of a C library: qsort, formats, conversions, searches, allocation, files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct word {
	char text[12];
	double weight;
};

static int by_weight(const void *a, const void *b)
{
	const struct word *x = a, *y = b;

	return x->weight < y->weight ? -1 : x->weight > y->weight;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct word *)a)->text, ((const struct word *)b)->text);
}

int main(void)
{
	enum { N = 20 };
	struct word *words = calloc(N, sizeof(*words)), key = {"wd3dc", 0}, *found;
	unsigned int r = 12345, n = 0;
	char *all = NULL, *save, line[80];
	size_t size;
	FILE *f = open_memstream(&all, &size);

	for (int i = 0; i < N; i++) {
		r = r * 1103515245 + 12345;
		snprintf(words[i].text, sizeof(words[i].text), "w%x", r >> 16);
		words[i].weight = strtod("1.25e2", NULL) / (1 + r % 97);
	}
	qsort(words, N, sizeof(*words), by_text);
	found = bsearch(&key, words, N, sizeof(*words), by_text);
	qsort(words, N, sizeof(*words), by_weight);
	for (int i = 0; i < N; i++)
		fprintf(f, "%-12s|%8.3f|%+d|%05x;", words[i].text, words[i].weight, i - 10, i * 77);
	fclose(f);
	for (char *p = strtok_r(all, ";", &save); p; p = strtok_r(NULL, ";", &save)) {
		double weight;

		if (sscanf(p, "%11[^| ] |%lf", line, &weight) == 2 && weight > 10)
			n++;
		if (strstr(p, "|+"))
			puts(p);
	}
	printf("%u heavy, %s, %zu bytes\n", n, found ? found->text : "not found", size);
	free(all);
	free(words);
	return 0;
}
